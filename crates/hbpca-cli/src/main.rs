//! `hbpca`: principal components with a proof, from the command line.
//!
//! One way through: [`args`] (what was typed) → [`plan`] (what it means, with inputs found and outputs begun) →
//! [`commands`] (the work) → [`output`] (what is shown) → [`exit`] (how it ended).

mod args;
mod commands;
mod exit;
mod interrupt;
mod memory;
mod output;
mod plan;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ACCOUNT: memory::Account = memory::Account;

fn main() -> ExitCode {
    memory::inject_faults();
    memory::limit(None);
    let cli = args::Cli::parse();
    interrupt::listen();
    match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::say::error(&failure);
            failure.exit().into()
        }
    }
}

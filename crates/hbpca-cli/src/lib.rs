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

use exit::{Exit, Failure};
use output::{json, say};

#[global_allocator]
static ACCOUNT: memory::Account = memory::Account;

fn main() -> ExitCode {
    memory::inject_faults();
    memory::limit(None);
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    if cli.command.is_quiet() {
        say::be_quiet();
    }
    interrupt::listen();
    match commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            say::error(&failure);
            report(&failure);
            failure.exit().into()
        }
    }
}

/// Help and versions are answers; everything else is an error in what was typed.
fn not_understood(error: &clap::Error) -> ExitCode {
    // A closed stream leaves nobody to tell.
    let _ = error.print();
    if !error.use_stderr() {
        return Exit::Success.into();
    }
    report(&Failure::Usage(error.render().to_string().trim_end().to_owned()));
    Exit::Usage.into()
}

/// Scripts that asked for JSON get the failure as an object, too.
fn report(failure: &Failure) {
    if std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json") {
        // A standard output that cannot be written to has been the failure, or changes nothing about it.
        let _ = json::print(&json::FailureObject::new(failure));
    }
}

//! `hbpca`: principal components with a proof, from the command line.
//!
//! One way through: [`args`] (what was typed) → [`plan`] (what it means, with inputs found and outputs begun) →
//! [`commands`] (the work) → [`output`] (what is shown) → [`exit`] (how it ended). Where a launcher started several [`ranks`],
//! each goes that way, and rank 0 speaks for all.

mod args;
mod commands;
mod exit;
mod interrupt;
mod memory;
mod output;
mod plan;
mod ranks;

use std::process::ExitCode;

use clap::Parser;

use exit::{Exit, Failure};
use output::{json, say};

#[global_allocator]
static ACCOUNT: memory::Account = memory::Account;

fn main() -> ExitCode {
    memory::inject_faults();
    memory::limit(None);
    if ranks::is_another() {
        say::be_silent();
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    if cli.command.is_quiet() {
        say::be_quiet();
    }
    interrupt::listen();
    run(cli.command)
}

#[cfg(not(unix))]
fn run(command: args::Command) -> ExitCode {
    ended(&commands::run(command)).into()
}

/// Alone, or as one of the ranks that a launcher started.
#[cfg(unix)]
fn run(command: args::Command) -> ExitCode {
    use args::Command;
    use hbpca::operator::Communicator;

    let ranks = match ranks::join() {
        Ok(ranks) => ranks,
        Err(failure) => {
            let exit = ended(&Err(failure));
            ranks::let_rank_0_speak();
            return exit.into();
        }
    };
    let Some(ranks) = ranks else { return ended(&commands::run(command)).into() };
    let result = match command {
        Command::Fit(args) => commands::fit_on_ranks(&args, &ranks),
        command if ranks.rank() == 0 => commands::run(command),
        _ => Ok(Exit::Success), // waits in `part`
    };
    // Said before any rank ends: a launcher may end all of them when the first one has.
    ended(&result);
    ExitCode::from(ranks::part(&ranks, &result))
}

/// Says why nothing was done, where that is so.
fn ended(result: &Result<Exit, Failure>) -> Exit {
    match result {
        Ok(exit) => *exit,
        Err(failure) => {
            say::error(failure);
            report(failure);
            failure.exit()
        }
    }
}

/// Help and versions are answers; everything else is an error in what was typed.
fn not_understood(error: &clap::Error) -> ExitCode {
    if !say::is_silent() {
        // A closed stream leaves nobody to tell.
        let _ = error.print();
    }
    if !error.use_stderr() {
        return Exit::Success.into();
    }
    report(&Failure::Usage(error.render().to_string().trim_end().to_owned()));
    ranks::let_rank_0_speak();
    Exit::Usage.into()
}

/// Scripts that asked for JSON get the failure as an object, too.
fn report(failure: &Failure) {
    if say::is_silent() {
        return;
    }
    if std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json") {
        // A standard output that cannot be written to has been the failure, or changes nothing about it.
        let _ = json::print(&json::FailureObject::new(failure));
    }
}

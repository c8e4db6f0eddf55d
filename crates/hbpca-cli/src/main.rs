//! `hbpca`: principal components with a proof, from the command line.
//!
//! One way through: [`args`] (what was typed) → [`plan`] (what it means, with inputs found and outputs begun) →
//! [`commands`] (the work) → [`output`] (what is shown) → [`exit`] (how it ended). Where a launcher started several [`ranks`],
//! each goes that way, and rank 0 speaks for all.

mod args;
mod commands;
mod exit;
mod interrupt;
mod output;
mod plan;
mod ranks;

use std::process::ExitCode;

use clap::Parser;
#[cfg(unix)]
use hbpca::operator::Communicator;

#[cfg(unix)]
use crate::args::Command;
use crate::exit::{Exit, Failure};

#[cfg(not(unix))]
fn main() -> ExitCode {
    let cli = args::Cli::parse();
    interrupt::listen(true);
    ended(&commands::run(cli.command), true).into()
}

#[cfg(unix)]
fn main() -> ExitCode {
    let speaks = !ranks::is_another();
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if speaks => error.exit(),
        Err(error) => return ExitCode::from(error.exit_code() as u8),
    };
    let ranks = match ranks::join() {
        Ok(ranks) => ranks,
        Err(failure) => return ended(&Err(failure), speaks).into(),
    };
    let Some(ranks) = ranks else {
        interrupt::listen(true);
        return ended(&commands::run(cli.command), true).into();
    };
    let speaks = ranks.rank() == 0;
    interrupt::listen(speaks);
    let result = match cli.command {
        Command::Fit(args) => commands::fit_on_ranks(&args, &ranks),
        // Others wait in `part`.
        command if speaks => commands::run(command),
        _ => Ok(Exit::Success),
    };
    // Said before any rank ends: a launcher may end all of them when the first one has.
    ended(&result, speaks);
    ExitCode::from(ranks::part(&ranks, &result))
}

/// Says why nothing was done, where that is so.
fn ended(result: &Result<Exit, Failure>, speaks: bool) -> Exit {
    match result {
        Ok(exit) => *exit,
        Err(failure) => {
            if speaks {
                output::say::error(failure);
            }
            failure.exit()
        }
    }
}

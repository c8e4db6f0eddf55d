//! `hbpca`: principal components with a proof, from the command line.
//!
//! One way through: [`args`] (what was typed) → [`plan`] (what it means, with inputs found and outputs begun) →
//! [`commands`] (the work) → [`output`] (what is shown) → [`exit`] (how it ended). Where a launcher started several [`ranks`],
//! each goes that way, and rank 0 speaks for all.
//!
//! A library, so that the program `hbpca` and the command that the Python package installs are the same code. The program adds the
//! allocator that keeps the [account of memory](memory::Account).

#![allow(
    rustdoc::private_intra_doc_links,
    rustdoc::broken_intra_doc_links,
    reason = "a program documents its private modules, and the words on its arguments are help texts"
)]

mod args;
mod commands;
mod exit;
mod interrupt;
pub mod memory;
mod output;
mod plan;
mod ranks;
mod typed;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use exit::{Exit, Failure};
use output::{json, say};

/// Does what was typed, the name of the program not included, and returns the exit code. A process calls it once: it listens to
/// signals and starts threads for all of it.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let typed = typed::remember(arguments);
    memory::inject_faults();
    memory::limit(None);
    if ranks::is_another() {
        say::be_silent();
    }
    let exit = match args::Cli::try_parse_from(std::iter::once(&"hbpca".into()).chain(typed)) {
        Ok(cli) => do_it(cli),
        Err(error) => not_understood(&error) as u8,
    };
    // Whoever called may end the process without it.
    let _ = std::io::stdout().flush();
    exit
}

/// Whether the grammar of the command line takes these words, the name of the program not included. Nothing is done.
pub fn understands(arguments: impl IntoIterator<Item = OsString>) -> bool {
    args::Cli::try_parse_from(std::iter::once("hbpca".into()).chain(arguments)).is_ok()
}

fn do_it(cli: args::Cli) -> u8 {
    if cli.command.is_quiet() {
        say::be_quiet();
    }
    interrupt::listen();
    alone_or_with_ranks(cli.command)
}

#[cfg(not(unix))]
fn alone_or_with_ranks(command: args::Command) -> u8 {
    ended(&commands::run(command)) as u8
}

/// Alone, or as one of the ranks that a launcher started.
#[cfg(unix)]
fn alone_or_with_ranks(command: args::Command) -> u8 {
    use args::Command;
    use hbpca::operator::Communicator;

    let ranks = match ranks::join() {
        Ok(ranks) => ranks,
        Err(failure) => {
            let exit = ended(&Err(failure));
            ranks::let_rank_0_speak();
            return exit as u8;
        }
    };
    let Some(ranks) = ranks else { return ended(&commands::run(command)) as u8 };
    let result = match command {
        Command::Fit(args) => commands::fit_on_ranks(&args, &ranks),
        Command::Transform(args) if commands::is_folder_of_scores(&args.output) => {
            commands::transform_parts(&args, &ranks)
        }
        command if ranks.rank() == 0 => commands::run(command),
        _ => Ok(Exit::Success), // waits in `part`
    };
    // Said before any rank ends: a launcher may end all of them when the first one has.
    ended(&result);
    ranks::part(&ranks, &result)
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
fn not_understood(error: &clap::Error) -> Exit {
    if !say::is_silent() {
        // A closed stream leaves nobody to tell.
        let _ = error.print();
    }
    if !error.use_stderr() {
        return Exit::Success;
    }
    report(&Failure::Usage(error.render().to_string().trim_end().to_owned()));
    ranks::let_rank_0_speak();
    Exit::Usage
}

/// Scripts that asked for JSON get the failure as an object, too.
fn report(failure: &Failure) {
    if typed::asks_for_json() && !say::is_silent() {
        // A standard output that cannot be written to has been the failure, or changes nothing about it.
        let _ = json::print(&json::FailureObject::new(failure));
    }
}

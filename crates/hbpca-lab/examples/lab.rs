//! The laboratory's subcommands as a program of their own, for those who work on the laboratory.

use clap::Parser;
use hbpca_lab::cli::ReproduceArgs;

#[derive(Debug, Parser)]
enum Command {
    /// Reproduce the paper
    Reproduce(ReproduceArgs),
}

fn main() {
    let done = match Command::parse() {
        Command::Reproduce(args) => args.run(),
    };
    if let Err(error) = done {
        eprintln!("error: {error}");
        std::process::exit(2);
    }
}

//! The laboratory's subcommands as a program of their own, for those who work on the laboratory.

use clap::Parser;
use hbpca_lab::cli::{CompareArgs, PlotArgs, ReproduceArgs};

#[derive(Debug, Parser)]
enum Command {
    /// Reproduce the paper
    Reproduce(ReproduceArgs),
    /// Race the solvers on a file
    Compare(CompareArgs),
    /// Plot a trace or a file of scores
    Plot(PlotArgs),
}

fn main() {
    let typed = std::env::args().collect::<Vec<_>>().join(" ");
    let done = match Command::parse() {
        Command::Reproduce(args) => args.run(typed).map(|findings| findings.to_string()),
        Command::Compare(args) => args.run(typed).map(|compared| compared.to_string()),
        Command::Plot(args) => args.run().map(|_| String::new()),
    };
    match done {
        Ok(text) => println!("{text}"),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(2);
        }
    }
}

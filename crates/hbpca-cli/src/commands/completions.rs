//! `hbpca completions`: from the same definitions as the help.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs `hbpca completions`.
pub fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hbpca", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

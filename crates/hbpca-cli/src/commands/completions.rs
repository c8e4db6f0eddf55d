//! `hbpca completions`: from the same definitions as the help.

use clap::CommandFactory;
use serde::Serialize;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output::{self, json};

/// `hbpca completions --json`.
#[derive(Serialize)]
struct Object<'a> {
    shell: String,
    script: &'a str,
}

/// Runs `hbpca completions`.
pub fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hbpca", &mut script);
    let script = String::from_utf8_lossy(&script);
    if args.json.json {
        json::print(&Object { shell: args.shell.to_string(), script: &script })?;
    } else {
        output::print(&script)?;
    }
    Ok(Exit::Success)
}

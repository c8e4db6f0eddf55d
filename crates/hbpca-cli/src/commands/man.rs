//! `hbpca man`: from the same definitions as the help.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use serde::Serialize;

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Failure};
use crate::output::{self, json};
use crate::plan;

/// `hbpca man --json`.
#[derive(Serialize)]
struct Object {
    page: Option<String>,
    /// The files of --folder.
    output: Vec<PathBuf>,
}

/// Runs `hbpca man`.
pub fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let (page, output) = match &args.folder {
        None => (Some(page(Cli::command())?), Vec::new()),
        Some(folder) => (None, write_all(folder)?),
    };
    if args.json.json {
        json::print(&Object { page, output })?;
    } else if let Some(page) = page {
        output::print(&page)?;
    }
    Ok(Exit::Success)
}

fn page(command: clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::output("the man page", error))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// `hbpca.1` and one `hbpca-COMMAND.1` for each command.
fn write_all(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::output(folder.display(), error))?;
    let mut all = Cli::command();
    all.build();
    let commands = all.get_subcommands().filter(|command| command.get_name() != "help").cloned();
    let pages = commands.map(|command| (format!("hbpca-{}", command.get_name()), command));
    let mut written = Vec::new();
    for (name, command) in std::iter::once(("hbpca".to_owned(), all.clone())).chain(pages) {
        let path = folder.join(format!("{name}.1"));
        let text = page(command.name(name))?;
        let mut file = plan::create(&path)?;
        file.write_all(text.as_bytes()).map_err(|error| Failure::output(path.display(), error))?;
        file.commit()?;
        written.push(path);
    }
    Ok(written)
}

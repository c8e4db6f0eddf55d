//! `hbpca transform` into a folder: parts in, parts out. Ranks take turns at the parts.

use std::path::{Path, PathBuf};

use hbpca::operator::Communicator;
use hbpca_io::{Compression, Format};

use super::transform;
use crate::args::TransformArgs;
use crate::exit::{Exit, Failure};
use crate::output::json::{self, TableObject};
use crate::plan::{self, Files, Source};
use crate::ranks;

/// Whether scores go to a folder: to one that is there, or to a name that ends in a slash. A chunk folder is a file here.
pub fn is_folder(output: &Path) -> bool {
    let ends_in_slash = output.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
    ends_in_slash || output.is_dir() && Format::from_path(output).is_none()
}

/// Writes one file of scores for each file of the data; alone, or as one of several ranks.
pub fn run(args: &TransformArgs, of: &dyn Communicator) -> Result<Exit, Failure> {
    let own = plan::use_threads(&args.threads, (&args.verbosity).into())
        .and_then(|()| Parts::plan(args))
        .and_then(|parts| parts.write(args, (of.rank(), of.size())));
    let written = ranks::agree(of, own)?;
    let n = ranks::total(of, written.iter().map(|part| part.n).sum())?;
    if let Some(first) = written.into_iter().next().filter(|_| of.rank() == 0 && args.json.json) {
        json::print(&TableObject { n, output: args.output.clone(), ..first })?;
    }
    Ok(Exit::Success)
}

/// The files of the data, each with the file of its scores.
struct Parts(Vec<(PathBuf, PathBuf)>);

impl Parts {
    /// Refuses streams, and names that two parts share.
    fn plan(args: &TransformArgs) -> Result<Self, Failure> {
        let (input, _) = Source::find(&args.data)?.into_parts();
        let folder = args.output.display();
        let Some(read) = input.files()? else {
            return Err(Failure::Usage(format!(
                "--output {folder} is a folder, for the scores of files: name a file for those of a stream"
            )));
        };
        std::fs::create_dir_all(&args.output).map_err(|error| Failure::output(folder, error))?;
        let written: Vec<PathBuf> = read.iter().map(|path| place(path, args)).collect::<Result<_, _>>()?;
        let files = Files::default().reads("the model", [&args.model]).reads("data", &read);
        files.writes("--output", &written).check()?;
        Ok(Self(read.into_iter().zip(written).collect()))
    }

    /// Every `size`-th part from the `rank`-th on.
    fn write(self, args: &TransformArgs, (rank, size): (usize, usize)) -> Result<Vec<TableObject>, Failure> {
        let mine = self.0.into_iter().skip(rank).step_by(size);
        mine.map(|(read, written)| {
            let mut part = args.clone();
            part.data.data = vec![read];
            part.output = written;
            transform::scores(&part)
        })
        .collect()
    }
}

/// A file of the data has its name among the scores; `--output-format` replaces the extension.
fn place(read: &Path, args: &TransformArgs) -> Result<PathBuf, Failure> {
    let name = read.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let Some(format) = args.output_format.output_format else {
        let path = args.output.join(&name);
        plan::known_format(&path)?;
        return Ok(path);
    };
    let bare = Compression::strip_extension(&name);
    let stem = bare.rsplit_once('.').map_or(bare, |(stem, _)| stem);
    Ok(args.output.join(format!("{stem}.{format}")))
}

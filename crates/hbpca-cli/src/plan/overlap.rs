//! An output is never an input, and two outputs are never one file: whatever names they go by.

use std::fs;
use std::path::{Path, PathBuf};

use hbpca_io::{Compression, Format};

use crate::exit::Failure;

/// The files a command reads and writes, each with the flag or the word that names it.
#[derive(Default)]
pub struct Files<'a> {
    inputs: Vec<(&'a str, PathBuf)>,
    outputs: Vec<(&'a str, PathBuf)>,
}

impl<'a> Files<'a> {
    /// Adds files that are read; what is in a folder is read with it.
    pub fn reads<P: AsRef<Path>>(mut self, what: &'a str, paths: impl IntoIterator<Item = P>) -> Self {
        for path in paths {
            let path = path.as_ref();
            if path == Path::new("-") {
                self.inputs.push((what, PathBuf::from("/dev/stdin")));
                continue;
            }
            let inside = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            self.inputs.extend(inside.map(|file| (what, file)));
            self.inputs.push((what, path.to_owned()));
        }
        self
    }

    /// Adds files that are written.
    pub fn writes<P: AsRef<Path>>(mut self, what: &'a str, paths: impl IntoIterator<Item = P>) -> Self {
        self.outputs.extend(paths.into_iter().map(|path| (what, path.as_ref().to_owned())));
        self
    }

    /// Refuses an output that is an input, or another output.
    pub fn check(&self) -> Result<(), Failure> {
        let inputs: Vec<_> = self.inputs.iter().map(|(what, path)| (what, path, identity(path))).collect();
        let mut written: Vec<(&str, &Path, Option<Identity>)> = Vec::new();
        for (flag, path) in &self.outputs {
            let this = identity(path);
            let is_this = |other: &Option<Identity>| this.is_some() && *other == this;
            if let Some((what, input, _)) = inputs.iter().find(|(_, _, other)| is_this(other)) {
                let known_as =
                    if input == &path { String::new() } else { format!(" (as {})", input.display()) };
                return Err(Failure::Usage(format!(
                    "{flag} {} is read{known_as} as {what}, and would be replaced: name another file",
                    path.display()
                )));
            }
            if let Some((other, name, _)) = written.iter().find(|(_, _, other)| is_this(other)) {
                let way_out = "give them different names";
                return Err(Failure::Usage(format!(
                    "{other} and {flag} both name {}: {way_out}",
                    name.display()
                )));
            }
            written.push((flag, path, this));
        }
        Ok(())
    }
}

/// What makes a file the same under any name.
#[derive(PartialEq, Eq)]
enum Identity {
    /// Device and number, which links share.
    #[cfg(unix)]
    Number(u64, u64),
    /// The resolved name, of a file that is not there yet or where there are no numbers.
    Name(PathBuf),
}

/// Devices and pipes have none: they may be read and written.
fn identity(path: &Path) -> Option<Identity> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() || about.is_dir() => existing(path, &about),
        Ok(_) => None,
        Err(_) => {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let name = path.file_name()?;
            Some(Identity::Name(folder.canonicalize().ok()?.join(name)))
        }
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere a name may not be resolved")]
fn existing(_: &Path, about: &fs::Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some(Identity::Number(about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn existing(path: &Path, _: &fs::Metadata) -> Option<Identity> {
    path.canonicalize().ok().map(Identity::Name)
}

/// Extensions that promise something else than what this program writes under a name of the user's own choice.
const OTHERS: [&str; 14] =
    ["html", "htm", "svg", "png", "jpg", "pdf", "json", "jsonl", "txt", "md", "xlsx", "h5ad", "bed", "zip"];

/// Refuses a name whose extension contradicts `content`, which is written as `own`.
pub fn refuse_misleading_name(flag: &str, path: &Path, content: &str, own: &[&str]) -> Result<(), Failure> {
    let extension = path.extension().map(|x| x.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let is_known = Format::from_path(path).is_some()
        || Compression::from_path(path).is_some()
        || OTHERS.contains(&extension.as_str())
        || extension == "safetensors";
    if own.contains(&extension.as_str()) || !is_known {
        return Ok(());
    }
    let way_out = own.first().map_or_else(
        || "leave the extension out, or choose another such as .ckpt".to_owned(),
        |own| format!("end the name in .{own}"),
    );
    Err(Failure::Usage(format!(
        "{flag} {}: it will hold {content}, which .{extension} is not: {way_out}",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_promise_something_else_are_refused() {
        let model = |name: &str| refuse_misleading_name("-o", Path::new(name), "a model", &["safetensors"]);
        for name in ["m.safetensors", "m", "m.model", "v1.2", "M.SAFETENSORS"] {
            assert!(model(name).is_ok(), "{name}");
        }
        for name in ["m.csv", "m.npy", "m.html", "m.safetensors.gz", "m.chunks", "x.parquet", "m.JSON"] {
            assert!(model(name).is_err(), "{name}");
        }
        let text = model("out.csv").unwrap_err().to_string();
        assert_eq!(text, "-o out.csv: it will hold a model, which .csv is not: end the name in .safetensors");
        assert!(refuse_misleading_name("--checkpoint", Path::new("c.ckpt"), "a checkpoint", &[]).is_ok());
        assert!(refuse_misleading_name("--checkpoint", Path::new("c.csv"), "a checkpoint", &[]).is_err());
    }
}

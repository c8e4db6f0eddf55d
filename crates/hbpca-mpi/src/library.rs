//! Finding the MPI library of this machine, and which binary interface it speaks.

use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::launcher::LauncherKind;
use crate::table::{self, Calls};
use crate::{Launcher, StartError};

/// Names by which the dynamic linker knows MPI libraries: those of Open MPI, of MPICH and its relatives, of the standard interface.
const OPEN_MPI: [&str; 2] = ["libmpi.so.40", "libmpi.40.dylib"];
const MPICH: [&str; 2] = ["libmpi.so.12", "libmpi.12.dylib"];
const STANDARD: [&str; 2] = ["libmpi_abi.so.0", "libmpi_abi.so.1"];
const ANY: [&str; 2] = ["libmpi.so", "libmpi.dylib"];

/// Opens the library that is named, or the first that is found; returns what messages call it.
pub(crate) fn open(
    named: Option<PathBuf>,
    launcher: Option<Launcher>,
) -> Result<(String, Box<dyn Calls>), StartError> {
    let candidates = named.map_or_else(|| candidates(launcher), |named| vec![named]);
    let mut tried = Vec::new();
    for path in candidates {
        match load(&path) {
            Ok(library) => {
                let name = path.display().to_string();
                return match calls(library) {
                    Ok(calls) => Ok((name, calls)),
                    Err(reason) => Err(StartError::Unknown { library: name, reason }),
                };
            }
            Err(error) => tried.push(error.to_string()),
        }
    }
    Err(StartError::NoLibrary { tried: tried.join("; ") })
}

/// Where the library may be: beside the launcher that is found first, then wherever the linker looks.
fn candidates(launcher: Option<Launcher>) -> Vec<PathBuf> {
    let preferred = match launcher.map(|launcher| launcher.kind) {
        Some(LauncherKind::Pmi) => [MPICH, STANDARD, OPEN_MPI, ANY],
        _ => [OPEN_MPI, MPICH, STANDARD, ANY],
    };
    let names = preferred.concat();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beside: Vec<PathBuf> = std::env::split_paths(&path)
        .filter(|folder| folder.join("mpiexec").exists())
        .filter_map(|folder| folder.parent().map(|prefix| prefix.join("lib")))
        .collect();
    let found = beside.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    found.filter(|path| path.exists()).chain(names.iter().map(PathBuf::from)).collect()
}

#[allow(unsafe_code, reason = "a library is opened")]
fn load(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: what runs when the library is opened is that of an MPI library, made to be opened; nothing of Rust is changed by it.
    // The parts that Open MPI opens later look for its symbols among the global ones.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
}

/// The functions of a library, by the binary interface it speaks.
fn calls(library: Library) -> Result<Box<dyn Calls>, String> {
    if table::is_open_mpi(&library) {
        return table::open_mpi(library);
    }
    match table::standard_version(&library) {
        Some(1) => table::standard(library),
        Some(newer) if newer > 1 => {
            Err(format!("it speaks version {newer} of the standard binary interface"))
        }
        _ => table::mpich(library),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_the_way_out() {
        let error = open(Some("/nowhere/libmpi.so".into()), None).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("/nowhere/libmpi.so") && error.contains("HBPCA_LIBMPI="), "{error}");
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        for name in ["libm.so.6", "libSystem.dylib"] {
            if let Err(error) = open(Some(name.into()), None).map(|_| ())
                && matches!(error, StartError::Unknown { .. })
            {
                assert!(error.to_string().contains("MPI_Init_thread"), "{error}");
                return;
            }
        }
        panic!("no library to try");
    }
}

//! The functions that are called, and the constants of the three binary interfaces.
//!
//! | | MPICH and relatives | Open MPI | MPI ABI 1.0 |
//! |---|---|---|---|
//! | handles are | ints | addresses | addresses |
//! | `MPI_COMM_WORLD` | 0x44000000 | of `ompi_mpi_comm_world` | 0x101 |
//! | `MPI_DOUBLE` | 0x4c00080b | of `ompi_mpi_double` | 0x214 |
//! | `MPI_ERRORS_RETURN` | 0x54000001 | of `ompi_mpi_errors_return` | 0x143 |
//! | `MPI_STATUS_IGNORE` | 1 | 0 | 0 |
//! | `MPI_THREAD_SERIALIZED` | 2 | 2 | 2048 |
//!
//! `ci/mpi.sh` compares them with the headers of the libraries it tests with.
#![allow(unsafe_code, reason = "functions of a foreign library are called")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use libloading::os::unix::Library;

/// Messages of all kinds carry this number: MPI keeps those between two ranks in order.
const TAG: c_int = 77;
/// `MPI_MAX_ERROR_STRING` of any library, and room.
const LONGEST_TEXT: usize = 1024;

/// A count or a rank as MPI takes it. Messages are cut before they are longer than an int can tell.
fn int(x: usize) -> c_int {
    c_int::try_from(x).unwrap_or(c_int::MAX)
}

/// A handle that is an address.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Address(*mut c_void);

// SAFETY: a handle is a name that MPI gives to something of its own; no thread looks behind it.
unsafe impl Send for Address {}
// SAFETY: the same.
unsafe impl Sync for Address {}

impl Address {
    fn of(number: usize) -> Self {
        Self(ptr::without_provenance_mut(number))
    }
}

/// What is asked of an MPI library, with error codes as it returns them.
pub(crate) trait Calls: Send + Sync {
    /// Starts it; returns this rank and how many there are.
    fn start(&self) -> Result<(usize, usize), String>;
    fn send(&self, values: &[f64], to: usize) -> c_int;
    fn receive(&self, values: &mut [f64], from: usize) -> c_int;
    fn broadcast(&self, values: &mut [f64], root: usize) -> c_int;
    fn error_text(&self, code: c_int) -> String;
    fn finish(&self);
    fn abort(&self, code: u8);
}

/// The constants of a binary interface whose handles are `H`.
struct Constants<H> {
    world: H,
    double: H,
    errors_return: H,
    /// The address that stands for "no status".
    status_ignore: usize,
    serialized: c_int,
}

/// The functions, whose types are those of the standard with handles `H`.
struct Table<H> {
    constants: Constants<H>,
    init_thread: unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int,
    comm_rank: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    comm_size: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    set_errhandler: unsafe extern "C" fn(H, H) -> c_int,
    send: unsafe extern "C" fn(*const c_void, c_int, H, c_int, c_int, H) -> c_int,
    recv: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, c_int, H, *mut c_void) -> c_int,
    bcast: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, H) -> c_int,
    error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    abort: unsafe extern "C" fn(H, c_int) -> c_int,
    /// Keeps the functions where they are.
    _library: Library,
}

/// A symbol's address as a value of type `T`, a function or a pointer.
///
/// # Safety
/// The symbol must be of type `T`.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller knows the type.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| format!("it has no {name}"))
}

impl<H: Copy + Send + Sync + 'static> Table<H> {
    fn boxed(library: Library, constants: Constants<H>) -> Result<Box<dyn Calls>, String> {
        // SAFETY: the types are those of the MPI standard for these names; `H` is what this library's handles are.
        let table = unsafe {
            Self {
                constants,
                init_thread: symbol(&library, "MPI_Init_thread")?,
                comm_rank: symbol(&library, "MPI_Comm_rank")?,
                comm_size: symbol(&library, "MPI_Comm_size")?,
                set_errhandler: symbol(&library, "MPI_Comm_set_errhandler")?,
                send: symbol(&library, "MPI_Send")?,
                recv: symbol(&library, "MPI_Recv")?,
                bcast: symbol(&library, "MPI_Bcast")?,
                error_string: symbol(&library, "MPI_Error_string")?,
                finalize: symbol(&library, "MPI_Finalize")?,
                abort: symbol(&library, "MPI_Abort")?,
                _library: library,
            }
        };
        Ok(Box::new(table))
    }
}

impl<H: Copy + Send + Sync + 'static> Calls for Table<H> {
    fn start(&self) -> Result<(usize, usize), String> {
        let Constants { world, errors_return, serialized, .. } = self.constants;
        let mut provided = 0;
        let started = |code: c_int, what: &str| {
            if code == 0 { Ok(()) } else { Err(format!("{what} returned {code}")) }
        };
        // SAFETY: null pointers stand for arguments that are not given; `provided` is an int that outlives the call.
        let code =
            unsafe { (self.init_thread)(ptr::null_mut(), ptr::null_mut(), serialized, &raw mut provided) };
        started(code, "MPI_Init_thread")?;
        if provided < serialized {
            return Err("it cannot be called from the threads of a pool (MPI_THREAD_SERIALIZED)".into());
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI was started; the handles are those of this library, and both ints outlive the calls.
        let codes = unsafe {
            [
                (self.set_errhandler)(world, errors_return),
                (self.comm_rank)(world, &raw mut rank),
                (self.comm_size)(world, &raw mut size),
            ]
        };
        codes.into_iter().try_for_each(|code| started(code, "asking for the ranks"))?;
        match (usize::try_from(rank), usize::try_from(size)) {
            (Ok(rank), Ok(size)) if rank < size => Ok((rank, size)),
            _ => Err(format!("it says that this is rank {rank} of {size}")),
        }
    }

    fn send(&self, values: &[f64], to: usize) -> c_int {
        let Constants { world, double, .. } = self.constants;
        // SAFETY: the numbers outlive the call, which reads as many as there are; counts and ranks fit an int.
        unsafe { (self.send)(values.as_ptr().cast(), int(values.len()), double, int(to), TAG, world) }
    }

    fn receive(&self, values: &mut [f64], from: usize) -> c_int {
        let Constants { world, double, status_ignore, .. } = self.constants;
        let (count, from) = (int(values.len()), int(from));
        let status = ptr::without_provenance_mut(status_ignore);
        // SAFETY: the call writes at most `count` numbers, which there are; a longer message is an error. The status is not written.
        unsafe { (self.recv)(values.as_mut_ptr().cast(), count, double, from, TAG, world, status) }
    }

    fn broadcast(&self, values: &mut [f64], root: usize) -> c_int {
        let Constants { world, double, .. } = self.constants;
        // SAFETY: the call reads or writes as many numbers as there are.
        unsafe { (self.bcast)(values.as_mut_ptr().cast(), int(values.len()), double, int(root), world) }
    }

    fn error_text(&self, code: c_int) -> String {
        let mut text = [0_u8; LONGEST_TEXT];
        let mut length = 0;
        // SAFETY: there is room for the longest text of any library.
        unsafe { (self.error_string)(code, text.as_mut_ptr().cast(), &raw mut length) };
        let length = usize::try_from(length).unwrap_or(0).min(LONGEST_TEXT);
        format!("{} (MPI error {code})", String::from_utf8_lossy(&text[..length]).trim())
    }

    fn finish(&self) {
        // SAFETY: MPI was started and is ended once.
        unsafe { (self.finalize)() };
    }

    fn abort(&self, code: u8) {
        // SAFETY: MPI was started; the call ends the process.
        unsafe { (self.abort)(self.constants.world, c_int::from(code)) };
    }
}

/// Whether it is Open MPI, whose constants are addresses of its own.
pub(crate) fn is_open_mpi(library: &Library) -> bool {
    // SAFETY: only the address is asked for.
    unsafe { symbol::<Address>(library, "ompi_mpi_comm_world") }.is_ok()
}

/// The version of the standard binary interface it speaks, if any.
pub(crate) fn standard_version(library: &Library) -> Option<c_int> {
    type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: the type is that of the standard.
    let version = unsafe { symbol::<Version>(library, "MPI_Abi_get_version") }.ok()?;
    let (mut major, mut minor) = (-1, -1);
    // SAFETY: it may be called before MPI is started, and writes two ints.
    let code = unsafe { version(&raw mut major, &raw mut minor) };
    (code == 0 && major >= 1).then_some(major)
}

/// Open MPI 4 and 5.
pub(crate) fn open_mpi(library: Library) -> Result<Box<dyn Calls>, String> {
    // SAFETY: the symbols are objects whose addresses are the handles; they are not looked into.
    let constants = unsafe {
        Constants::<Address> {
            world: symbol(&library, "ompi_mpi_comm_world")?,
            double: symbol(&library, "ompi_mpi_double")?,
            errors_return: symbol(&library, "ompi_mpi_errors_return")?,
            status_ignore: 0,
            serialized: 2,
        }
    };
    Table::boxed(library, constants)
}

/// MPICH, Intel MPI, MVAPICH, Cray MPI: the interface they agreed on.
pub(crate) fn mpich(library: Library) -> Result<Box<dyn Calls>, String> {
    let constants = Constants::<c_int> {
        world: 0x4400_0000,
        double: 0x4c00_080b,
        errors_return: 0x5400_0001,
        status_ignore: 1,
        serialized: 2,
    };
    Table::boxed(library, constants)
}

/// Any library that speaks MPI ABI 1.
pub(crate) fn standard(library: Library) -> Result<Box<dyn Calls>, String> {
    let constants = Constants {
        world: Address::of(0x101),
        double: Address::of(0x214),
        errors_return: Address::of(0x143),
        status_ignore: 0,
        serialized: 2048,
    };
    Table::boxed(library, constants)
}

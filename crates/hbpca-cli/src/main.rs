//! The program `hbpca`.

use std::process::ExitCode;

use hbpca_cli::memory::Account;

#[global_allocator]
static ACCOUNT: Account = Account;

fn main() -> ExitCode {
    hbpca_cli::run(std::env::args_os().skip(1)).into()
}

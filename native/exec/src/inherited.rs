//! What `nix` and `std` cannot do safely: take over an inherited descriptor, act in the child between
//! `fork` and `exec`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};

/// Takes the descriptor over and hides it from the command; reads do not wait. Fails if it is not open. Call it once.
pub fn take_control(fd: RawFd) -> io::Result<File> {
    // SAFETY: the descriptor is only asked about; a number that is not open gives EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    let flags = OFlag::from_bits_truncate(fcntl(borrowed, FcntlArg::F_GETFL)?);
    fcntl(borrowed, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    // SAFETY: it is open, the parent passed it for this process alone, and nothing else here uses it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// In the child: the signal mask that this program was started with, and SIGKILL should this program
/// be killed itself, since nobody could prove the command's death then (S8).
pub fn prepare_child(command: &mut Command, mask: SigSet) {
    // SAFETY: the closure makes two system calls, both async-signal-safe, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            mask.thread_set_mask()?;
            Ok(())
        });
    }
}

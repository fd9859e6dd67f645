//! Statuses of the C interface as errors, with the text that the library keeps for the thread.
use hgemm_sys as sys;
use std::ffi::CStr;
use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    NotInitialized,
    InvalidArgument,
    NotSupported,
    AllocFailed,
    NoDevice,
    DriverError,
    LaunchFailed,
    WorkspaceTooSmall,
    Internal,
    TimedOut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub status: Status,
    /// One line that names the argument, its value and what was wanted.
    pub message: String,
}

impl Error {
    pub(crate) fn invalid(message: String) -> Error {
        Error {
            status: Status::InvalidArgument,
            message,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Error {}

/// The result of a call that this thread has just made.
pub(crate) fn check(status: sys::hgemm_status_t) -> Result<()> {
    let status = match status {
        sys::HGEMM_STATUS_SUCCESS => return Ok(()),
        sys::HGEMM_STATUS_NOT_INITIALIZED => Status::NotInitialized,
        sys::HGEMM_STATUS_INVALID_ARGUMENT => Status::InvalidArgument,
        sys::HGEMM_STATUS_NOT_SUPPORTED => Status::NotSupported,
        sys::HGEMM_STATUS_ALLOC_FAILED => Status::AllocFailed,
        sys::HGEMM_STATUS_NO_DEVICE => Status::NoDevice,
        sys::HGEMM_STATUS_DRIVER_ERROR => Status::DriverError,
        sys::HGEMM_STATUS_LAUNCH_FAILED => Status::LaunchFailed,
        sys::HGEMM_STATUS_WORKSPACE_TOO_SMALL => Status::WorkspaceTooSmall,
        sys::HGEMM_STATUS_TIMED_OUT => Status::TimedOut,
        _ => Status::Internal,
    };
    // SAFETY: the text lives until this thread's next call of the library.
    let message = unsafe { CStr::from_ptr(sys::hgemm_last_error()) };
    Err(Error {
        status,
        message: message.to_string_lossy().into_owned(),
    })
}

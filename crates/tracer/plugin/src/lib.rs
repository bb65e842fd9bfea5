//! The QEMU plugin: QEMU's callbacks on one side, a [`model::stream::CoreListener`] a thread on the
//! other, nothing else.
//!
//! Constraints: it lives in the traced program's process. It keeps no descriptor open, writes to
//! none of the program's, starts no thread, and never panics: when something of its own fails the
//! program runs on untraced. QEMU calls back from every thread of the program.
//!
//! Not for: anything that can be tested without QEMU; that is in `tracer`.
//!
//! ```text
//! translate --> BlockTable (each block once) --> results file: records
//! block begins, memory touched --> Assembler of the vcpu --> CoreListener
//! system call --> maps, exec followed, fork, thread's end
//! ```

mod exec;
mod fork;
mod guest;
mod images;
mod install;
mod listeners;
mod process;
mod qemu;
mod syscall;
mod translate;
mod vcpu;

/// What a listener holds may be many megabytes, looked at here and there.
#[global_allocator]
static PAGES: tracer::pages::LargePages = tracer::pages::LargePages;

//! The QEMU plugin: QEMU's callbacks on one side, a [`model::stream::CoreListener`] a thread on the
//! other, nothing else.
//!
//! Constraints: those of [`tracer::inside`], which does whatever is not about QEMU. QEMU calls back
//! from every thread of the program.
//!
//! Not for: anything that can be tested without QEMU; that is in `tracer`.
//!
//! ```text
//! translate --> BlockTable (each block once) --> results file: records
//! block begins, memory touched --> Assembler of the vcpu --> CoreListener
//! system call --> tracer::inside::calls
//! ```

mod install;
mod qemu;
mod syscall;
mod translate;
mod vcpu;

/// What a listener holds may be many megabytes, looked at here and there.
#[global_allocator]
static PAGES: tracer::pages::LargePages = tracer::pages::LargePages;

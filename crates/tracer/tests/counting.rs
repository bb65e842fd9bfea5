//! Counts of planted programs, in closed form.

mod planted;

use std::os::unix::process::ExitStatusExt;

use planted::{assemble, compile, count, ran};
use tracer::counts::Totals;
use tracer::launch::Launch;
use tracer::settings::Listener;

const EXIT: &str = "mov $60, %eax\n xor %edi, %edi\n syscall\n";

fn totals(source: &str) -> Totals {
    let program = assemble(source);
    let (finished, counts) = count(&Launch::new(program));
    assert!(finished.status.success());
    assert_eq!(counts.len(), 1);
    assert!(counts[0].is_complete);
    assert!(counts[0].threads.values().all(|thread| thread.partials.is_empty()));
    let totals = counts[0].totals();
    assert_eq!(counts[0].instructions().values().sum::<u64>(), totals.instructions);
    totals
}

#[test]
fn a_counted_loop_runs_two_instructions_a_turn() {
    let n = 100_000;
    let totals =
        totals(&format!(".globl _start\n_start: mov ${n}, %ecx\n1: dec %ecx\n jnz 1b\n{EXIT}"));
    assert_eq!(totals.instructions, 1 + 2 * n + 3);
    assert_eq!((totals.taken, totals.not_taken), (n - 1, 1));
    assert_eq!((totals.loads, totals.stores), (Some(0), Some(0)));
}

#[test]
fn accesses_count_once_whatever_their_width() {
    let n = 1000;
    // A wide load and store, a stack push and pop, a read-modify-write, a locked one, a call.
    let body = "vmovdqu (%rsp), %ymm0\n vmovdqu %ymm0, -256(%rsp)\n movdqu (%rsp), %xmm1\n \
                push %rax\n pop %rbx\n incq -64(%rsp)\n lock incq -64(%rsp)\n call 2f\n";
    let totals = totals(&format!(
        ".globl _start\n_start: mov ${n}, %ecx\n1: {body} dec %ecx\n jnz 1b\n{EXIT}2: ret\n"
    ));
    assert_eq!(totals.instructions, 1 + 11 * n + 3);
    // vmovdqu, movdqu, pop, inc, lock inc, ret; vmovdqu, push, inc, lock inc, call.
    assert_eq!((totals.loads, totals.stores), (Some(6 * n), Some(5 * n)));
}

#[test]
fn a_repeated_string_instruction_is_one_instruction_and_moves_lines() {
    let source = format!(
        ".globl _start\n_start: lea from(%rip), %rsi\n lea to(%rip), %rdi\n mov $4096, %ecx\n nop\n \
         rep movsb\n lea to(%rip), %rdi\n mov $512, %ecx\n rep stosq\n xor %ecx, %ecx\n rep stosb\n \
         mov $8, %ecx\n 1: mov %ecx, %edx\n mov $64, %ecx\n lea from(%rip), %rdi\n xor %eax, %eax\n \
         repe scasb\n mov %edx, %ecx\n dec %ecx\n jnz 1b\n{EXIT}\
         .bss\n .balign 64\nfrom: .skip 4096\nto: .skip 4096\n"
    );
    let totals = totals(&source);
    assert_eq!(totals.instructions, 5 + 3 + 2 + 1 + 8 * 8 + 3);
    // 64 lines read and written by movs, 64 written by stos, one read by each of the scans.
    assert_eq!((totals.loads, totals.stores), (Some(64 + 8), Some(64 + 64)));
}

#[test]
fn more_accesses_than_the_buffer_holds_are_all_told() {
    let lines = 3 * 2048 + 5;
    let source = format!(
        ".globl _start\n_start: lea to(%rip), %rdi\n mov ${}, %ecx\n rep stosq\n{EXIT}\
         .bss\n .balign 64\nto: .skip {}\n",
        lines * 8,
        lines * 64
    );
    let totals = totals(&source);
    assert_eq!(totals.instructions, 6);
    assert_eq!((totals.loads, totals.stores), (Some(0), Some(lines)));
}

#[test]
fn an_instruction_over_a_page_boundary_counts_once() {
    let n = 500;
    // The loop's mov lies over the end of a page, and once more its jump does.
    for gap in 4096 - 12..4096 {
        let source = format!(
            ".globl _start\n.balign 4096\n_start: mov ${n}, %ecx\n jmp 1f\n .skip {gap} - 7, 0x90\n\
             1: inc %eax\n movabs $0x1122334455667788, %rdx\n dec %ecx\n jnz 1b\n{EXIT}"
        );
        assert_eq!(totals(&source).instructions, 2 + 4 * n + 3, "gap {gap}");
    }
}

#[test]
fn ten_runs_of_the_same_command_count_the_same() {
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        int main(int argc, char **argv) { char *p = malloc(100000); memset(p, argc, 100000);\n\
        qsort(p, 1000, 1, (int (*)(const void *, const void *))strcmp);\n\
        char s[50]; snprintf(s, 50, \"%f\", argc * 1.5); return s[0] == 'x'; }";
    let program = compile("same.c", source, &["-O1", "-w"]);
    let launch = Launch { is_repeatable: true, ..Launch::new(program) };
    let (_, first) = count(&launch);
    assert!(first[0].totals().instructions > 100_000);
    for _ in 0..9 {
        let (_, mut again) = count(&launch);
        again[0].key = first[0].key;
        assert_eq!(again[0].totals(), first[0].totals());
        assert_eq!(again[0].instructions(), first[0].instructions());
    }
}

#[test]
fn a_program_that_is_killed_keeps_its_counts() {
    let n = 10_000;
    let kill =
        "mov $39, %eax\n syscall\n mov %eax, %edi\n mov $9, %esi\n mov $62, %eax\n syscall\n";
    let source = format!(
        ".globl _start\n_start: mov ${n}, %ecx\n1: push %rcx\n dec %ecx\n jnz 1b\n{kill}{EXIT}"
    );
    let (finished, counts) = count(&Launch::new(assemble(&source)));
    assert_eq!(finished.status.signal(), Some(9));
    assert_eq!(counts[0].totals().instructions, 1 + 3 * n + 6);
    assert_eq!(counts[0].totals().stores, Some(n));
}

#[test]
fn blocks_alone_are_counted_without_accesses() {
    let n = 1000;
    let source =
        format!(".globl _start\n_start: mov ${n}, %ecx\n1: push %rcx\n dec %ecx\n jnz 1b\n{EXIT}");
    let listener = Listener::Tally { counts_accesses: false };
    let (_, counts) = count(&Launch { listener, ..Launch::new(assemble(&source)) });
    let totals = counts[0].totals();
    assert_eq!(totals.instructions, 1 + 3 * n + 3);
    assert_eq!((totals.loads, totals.stores), (None, None));
}

#[test]
fn a_fault_counts_what_ran_before_it_and_not_what_did_not() {
    // The handler steps over the load from nowhere, which is three bytes long.
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <ucontext.h>
        static void step(int s, siginfo_t *i, void *c) {
            (void)s; (void)i; ((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP] += 3;
        }
        int main(void) {
            struct sigaction a = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
            sigaction(SIGSEGV, &a, 0);
            for (int n = 0; n < 100; n++)
                __asm__ volatile("mov $0x11111111, %%eax\n push %%rax\n pop %%rax\n"
                    "mov (%%rdx), %%rbx\n mov $0x22222222, %%eax\n"
                    : : "d"(0L) : "rax", "rbx", "memory");
            return 0;
        }"#;
    let program = compile("fault.c", source, &["-O1", "-mno-red-zone"]);
    let (finished, counts) = count(&Launch::new(program));
    assert!(finished.status.success());
    assert_eq!(ran(&counts, &[0xb8, 0x11, 0x11, 0x11, 0x11]), 100);
    assert_eq!(ran(&counts, &[0xb8, 0x22, 0x22, 0x22, 0x22]), 100);
    assert_eq!(ran(&counts, &[0x48, 0x8b, 0x1a]), 0);
    let partials: u64 = counts[0].threads[&0].partials.iter().map(|partial| partial.times).sum();
    assert_eq!(partials, 100);
}

#[test]
fn signals_at_any_moment_change_no_count_of_the_program() {
    // Three loads, a store and a marker a turn, under a timer that fires all the time.
    let source = r#"
        #include <signal.h>
        #include <sys/time.h>
        static volatile long hits;
        static long data[8];
        static void hit(int s) { (void)s; hits++; }
        int main(void) {
            struct sigaction a = { .sa_handler = hit };
            sigaction(SIGALRM, &a, 0);
            struct itimerval t = { { 0, 300 }, { 0, 300 } };
            setitimer(ITIMER_REAL, &t, 0);
            while (hits < 20) {
                long n = 100000;
                __asm__ volatile("1: mov (%1), %%rax\n mov %%rax, 8(%1)\n mov 16(%1), %%rax\n"
                    "mov 24(%1), %%rax\n mov $0x12344321, %%eax\n dec %0\n jnz 1b\n"
                    : "+r"(n) : "r"(data) : "rax", "memory");
            }
            return 0;
        }"#;
    let program = compile("alarm.c", source, &["-O1"]);
    let (finished, counts) = count(&Launch::new(program));
    assert!(finished.status.success());
    let marker = [0xb8, 0x21, 0x43, 0x34, 0x12];
    let turns = ran(&counts, &marker);
    assert!(turns > 0 && turns.is_multiple_of(100_000), "{turns}");
    for (number, placed) in counts[0].blocks.iter().enumerate() {
        if placed.block.instructions.iter().any(|code| code.bytes.starts_with(&marker)) {
            let tally = counts[0].tally(number as u32);
            assert_eq!((tally.loads, tally.stores), (3 * tally.runs, tally.runs));
        }
    }
}

//! Code that changes and memory that is where the engine of our own might have wanted to be. Each program
//! says by its exit status where it went wrong.

mod planted;

use planted::{ran, unharmed};

#[test]
fn an_instruction_may_write_to_its_own_page_and_to_the_next_instruction() {
    let source = r#"
        .globl _start
        _start:
            mov $1000, %ecx
        1:  incl counter(%rip)
            movl $0x77, 2f+1(%rip)
        2:  mov $5, %eax
            cmp $0x77, %eax
            jne 3f
            movl $5, 2b+1(%rip)
            dec %ecx
            jnz 1b
            mov counter(%rip), %edi
            sub $1000, %edi
            mov $60, %eax
            syscall
        3:  mov $9, %edi
            mov $60, %eax
            syscall
            .align 4
        counter: .long 0
        "#;
    let options = ["-nostdlib", "-static", "-Wl,-N", "-Wl,--no-warn-rwx-segments"];
    let Some(counts) = unharmed("own-page.S", source, &options) else { return };
    assert_eq!(ran(&counts, &[0xb8, 0x77, 0, 0, 0]), 1000);
    assert_eq!(counts[0].totals().instructions, 1 + 8 * 1000 + 4);
}

#[test]
fn code_that_is_written_through_another_view_of_its_page_is_noticed() {
    let source = r#"
        #define _GNU_SOURCE
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        static unsigned char *code;
        static int is_run_as(unsigned char *view, int value) {
            view[0] = 0xb8; memcpy(view + 1, &value, 4); view[5] = 0xc3;
            return ((int (*)(void))code)() == value;
        }
        int main(void) {
            int file = memfd_create("code", 0);
            if (ftruncate(file, 16384)) return 1;
            unsigned char *view = mmap(0, 16384, 3, MAP_SHARED, file, 0);
            code = mmap(0, 8192, 5, MAP_SHARED, file, 4096);
            for (int i = 0; i < 50; i++) if (!is_run_as(view + 4096, 0x33330000 + i)) return 2;
            /* One that is made when the code has run already; one that becomes writable; one that moves. */
            unsigned char *later = mmap(0, 4096, 3, MAP_SHARED, file, 4096);
            if (!is_run_as(later, 0x33340000)) return 3;
            unsigned char *third = mmap(0, 4096, 1, MAP_SHARED, file, 4096);
            if (((int (*)(void))code)() != 0x33340000) return 4;
            mprotect(third, 4096, 3);
            if (!is_run_as(third, 0x33340001)) return 5;
            later = mremap(later, 4096, 8192, MREMAP_MAYMOVE);
            if (!is_run_as(later, 0x33340002)) return 6;
            munmap(view, 16384); munmap(third, 4096);
            if (!is_run_as(later, 0x33340003)) return 7;
            /* What the kernel writes. */
            int ends[2]; unsigned char made[6] = { 0xb8, 9, 0, 0x34, 0x33, 0xc3 };
            if (pipe(ends) || write(ends[1], made, 6) != 6 || read(ends[0], later, 6) != 6) return 8;
            return ((int (*)(void))code)() == 0x33340009 ? 0 : 9;
        }"#;
    let Some(counts) = unharmed("views.c", source, &["-O1"]) else { return };
    for value in [0u8, 1, 49] {
        assert_eq!(ran(&counts, &[0xb8, value, 0, 0x33, 0x33]), 1, "{value}");
    }
}

#[test]
fn a_fault_far_from_its_instruction_shows_every_register_and_is_taken_up_again() {
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <ucontext.h>
        static unsigned char *code;
        static int faults, bad;
        static void segv(int s, siginfo_t *info, void *c) {
            greg_t *r = ((ucontext_t *)c)->uc_mcontext.gregs;
            if (s != SIGSEGV || info->si_addr != code + 4096 || r[REG_RAX] != 0x1111) bad++;
            faults++;
            mprotect(code + 4096, 4096, 3);
        }
        int main(void) {
            struct sigaction a; memset(&a, 0, sizeof a);
            a.sa_sigaction = segv; a.sa_flags = SA_SIGINFO; sigaction(SIGSEGV, &a, 0);
            code = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            /* mov $0x1111,%eax; mov 4084(%rip),%rcx; ret */
            unsigned char made[] = { 0xb8, 0x11, 0x11, 0, 0, 0x48, 0x8b, 0x0d, 0xf4, 0x0f, 0, 0, 0xc3 };
            memcpy(code, made, sizeof made);
            mprotect(code, 4096, 5);
            mprotect(code + 4096, 4096, 0);
            long (*run)(void) = (long (*)(void))code;
            return run() == 0x1111 && faults == 1 && !bad ? 0 : 1;
        }"#;
    unharmed("far.c", source, &["-O1"]);
}

#[test]
fn a_program_with_three_gigabytes_of_its_own_has_them() {
    let source = r#"
        static char large[3ul << 30];
        volatile unsigned long step = 1ul << 26;
        int main(void) {
            unsigned long sum = 0;
            for (unsigned long i = 0; i < sizeof large; i += step) large[i] = (char)(i >> 26);
            for (unsigned long i = 0; i < sizeof large; i += step) sum += (unsigned char)large[i];
            return sum == 47 * 48 / 2 ? 0 : 1;
        }"#;
    unharmed("large.c", source, &["-O1", "-mcmodel=medium", "-no-pie", "-fno-pie"]);
    unharmed("large-pie.c", source, &["-O1", "-mcmodel=medium", "-fPIE", "-pie"]);
}

#[test]
fn memory_is_locked_kept_by_no_keys_and_mapped_sixty_thousand_times() {
    let source = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int has_old_calls(void) {
            char line[512]; int found = 0;
            FILE *maps = fopen("/proc/self/maps", "r");
            while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, "[vsyscall]") != 0;
            if (maps) fclose(maps);
            return found;
        }
        int main(void) {
            /* A key is given or not; without one it is as if there were none. */
            char *page = mmap(0, 4096, 1, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (syscall(SYS_pkey_mprotect, page, 4096, 3, -1)) return 1;
            page[0] = 1;
            char *large = mmap(0, 4 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
            if (large == MAP_FAILED && errno != ENOMEM) return 2;
            if (has_old_calls()) {
                long now = ((long (*)(long *))0xffffffffff600400ul)(0);
                if (now < 1000000000) return 3;
            }
            char *last = 0;
            for (int i = 0; i < 60000; i++) {
                last = mmap(0, 4096, i & 1 ? 3 : 1, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (last == MAP_FAILED) return 4;
            }
            last[0] = 1;
            return 0;
        }"#;
    unharmed("mapped-often.c", source, &["-O1"]);
    let source = r#"
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) {
            if (geteuid()) return 0;
            return mlockall(MCL_CURRENT | MCL_FUTURE);
        }"#;
    unharmed("locked.c", source, &["-O1"]);
}

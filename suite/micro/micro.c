/* Microbenchmarks: one binary, one loop a name.
 *
 *   micro NAME N      runs the loop N times and prints NAME N
 *   micro --list      prints one line a loop: class, name, instructions an iteration
 *
 * Every loop is written in assembly and ends in `dec; jnz`, so the instructions it retires are
 *
 *   instructions(N) = per_iteration * N + a constant that does not depend on N
 *
 * exactly; the tests check the closed form against a counted run. Both ways of every branch have
 * the same length, so the form holds for the unpredictable ones too. Only baseline x86-64 is
 * used. Each loop stresses one thing; none has two.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOBBERS "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", \
    "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "cc", "memory"

/* Loops keep N in r12 and may use one pointer in r13. The stack pointer is moved below the red
 * zone because some loops call. */
#define LOOP(name, before, body) \
    __attribute__((noinline)) static void name(uint64_t n, char *memory) \
    { \
        asm volatile("mov %0, %%r12\n mov %1, %%r13\n sub $256, %%rsp\n" before \
                     "\n.p2align 6\n1:\n" body "\n dec %%r12\n jnz 1b\n add $256, %%rsp\n" \
                     : : "r"(n), "r"(memory) : "r12", "r13", CLOBBERS); \
    }
#define TIMES(k, text) ".rept " #k "\n" text "\n.endr\n"
#define ONES "mov $1, %%eax\n mov $3, %%ebx\n mov $5, %%ecx\n mov $7, %%edx\n mov $9, %%esi\n" \
    "mov $11, %%edi\n mov $13, %%r8d\n mov $15, %%r9d\n"
#define DOUBLES "mov $0x3ff0000000000000, %%rax\n movq %%rax, %%xmm0\n movq %%rax, %%xmm1\n" \
    "movq %%rax, %%xmm2\n movq %%rax, %%xmm3\n movq %%rax, %%xmm4\n movq %%rax, %%xmm5\n" \
    "movq %%rax, %%xmm6\n movq %%rax, %%xmm7\n"

/* Dependent chains: each instruction waits for the one before. */
LOOP(chain_add, ONES, TIMES(16, "add %%rbx, %%rax"))
LOOP(chain_imul, ONES, TIMES(16, "imul %%rbx, %%rax"))
LOOP(chain_lea, ONES, TIMES(16, "lea 3(%%rax,%%rbx,4), %%rax"))
LOOP(chain_rotate, ONES, TIMES(16, "rol $5, %%rax"))
LOOP(chain_adc, ONES, TIMES(16, "adc %%rbx, %%rax"))
LOOP(chain_addsd, DOUBLES, TIMES(16, "addsd %%xmm1, %%xmm0"))
LOOP(chain_mulsd, DOUBLES, TIMES(16, "mulsd %%xmm1, %%xmm0"))
LOOP(chain_crossing, DOUBLES, TIMES(8, "movq %%xmm0, %%rax\n movq %%rax, %%xmm0"))

/* Ports: independent work, as much of one kind as the core takes. */
#define EIGHT(op) op " %%r10, %%rax\n" op " %%r10, %%rbx\n" op " %%r10, %%rcx\n" \
    op " %%r10, %%rdx\n" op " %%r10, %%rsi\n" op " %%r10, %%rdi\n" op " %%r10, %%r8\n" \
    op " %%r10, %%r9\n"
#define EIGHTX(op) op " %%xmm0, %%xmm0\n" op " %%xmm1, %%xmm1\n" op " %%xmm2, %%xmm2\n" \
    op " %%xmm3, %%xmm3\n" op " %%xmm4, %%xmm4\n" op " %%xmm5, %%xmm5\n" op " %%xmm6, %%xmm6\n" \
    op " %%xmm7, %%xmm7\n"
#define SHIFTS "shl $1, %%rax\n shl $1, %%rbx\n shl $1, %%rcx\n shl $1, %%rdx\n shl $1, %%rsi\n" \
    "shl $1, %%rdi\n shl $1, %%r8\n shl $1, %%r9\n"
#define LOADS "mov (%%r13), %%rax\n mov 8(%%r13), %%rbx\n mov 16(%%r13), %%rcx\n" \
    "mov 24(%%r13), %%rdx\n mov 32(%%r13), %%rsi\n mov 40(%%r13), %%rdi\n" \
    "mov 48(%%r13), %%r8\n mov 56(%%r13), %%r9\n"
#define STORES "mov %%rax, (%%r13)\n mov %%rax, 8(%%r13)\n mov %%rax, 16(%%r13)\n" \
    "mov %%rax, 24(%%r13)\n mov %%rax, 32(%%r13)\n mov %%rax, 40(%%r13)\n" \
    "mov %%rax, 48(%%r13)\n mov %%rax, 56(%%r13)\n"
LOOP(port_add, "mov $1, %%r10d\n" ONES, EIGHT("add") EIGHT("add"))
LOOP(port_imul, "mov $1, %%r10d\n" ONES, EIGHT("imul") EIGHT("imul"))
LOOP(port_shift, ONES, SHIFTS SHIFTS)
LOOP(port_load, "", LOADS LOADS)
LOOP(port_store, "mov $1, %%eax\n", STORES STORES)
LOOP(port_paddq, DOUBLES, EIGHTX("paddq") EIGHTX("paddq"))
LOOP(port_mulpd, DOUBLES, EIGHTX("mulpd") EIGHTX("mulpd"))
LOOP(port_nop, "", TIMES(16, "nop"))
LOOP(port_mixed, "mov $1, %%r10d\n" ONES,
     "add %%r10, %%rax\n mov (%%r13), %%rbx\n imul %%r10, %%rcx\n mov %%rdx, 64(%%r13)\n"
     "add %%r10, %%rsi\n mov 8(%%r13), %%rdi\n shl $1, %%r8\n add %%r10, %%r9\n")

/* Memory levels: chases through a random cycle of lines. The arena decides the level. */
LOOP(chase_one, "mov %%r13, %%rax\n", TIMES(8, "mov (%%rax), %%rax"))
LOOP(chase_two, "mov %%r13, %%rax\n mov 8(%%r13), %%rbx\n",
     TIMES(8, "mov (%%rax), %%rax\n mov (%%rbx), %%rbx"))
LOOP(chase_four,
     "mov %%r13, %%rax\n mov 8(%%r13), %%rbx\n mov 16(%%r13), %%rcx\n mov 24(%%r13), %%rdx\n",
     TIMES(8, "mov (%%rax), %%rax\n mov (%%rbx), %%rbx\n mov (%%rcx), %%rcx\n mov (%%rdx), %%rdx"))
LOOP(chase_dirty, "mov %%r13, %%rax\n", TIMES(8, "mov (%%rax), %%rax\n mov %%rax, 32(%%rax)"))

/* Streams: one line of 64 bytes an iteration, round an arena of 32 MiB. */
#define ADVANCE "add $64, %%rsi\n and $0x1ffffff, %%rsi\n lea (%%r13,%%rsi), %%rdi\n"
#define FROM "mov %%r13, %%rdi\n xor %%esi, %%esi\n mov $1, %%eax\n"
LOOP(stream_read, FROM,
     "mov (%%rdi), %%rax\n mov 8(%%rdi), %%rbx\n mov 16(%%rdi), %%rcx\n mov 24(%%rdi), %%rdx\n"
     "mov 32(%%rdi), %%r8\n mov 40(%%rdi), %%r9\n mov 48(%%rdi), %%r10\n mov 56(%%rdi), %%r11\n"
     ADVANCE)
LOOP(stream_write, FROM,
     "mov %%rax, 8(%%rdi)\n mov %%rax, 16(%%rdi)\n mov %%rax, 24(%%rdi)\n mov %%rax, 32(%%rdi)\n"
     ADVANCE)
LOOP(stream_copy, FROM,
     "movups (%%rdi), %%xmm0\n movups 16(%%rdi), %%xmm1\n movups %%xmm0, 32(%%rdi)\n"
     "movups %%xmm1, 48(%%rdi)\n" ADVANCE)
LOOP(stream_sum, DOUBLES FROM,
     "addpd (%%rdi), %%xmm0\n addpd 16(%%rdi), %%xmm1\n addpd 32(%%rdi), %%xmm2\n"
     "addpd 48(%%rdi), %%xmm3\n" ADVANCE)
LOOP(stream_page, FROM,
     "mov (%%rdi), %%rax\n add $4160, %%rsi\n and $0x1ffffff, %%rsi\n lea (%%r13,%%rsi), %%rdi\n")

/* Branches. A generator of numbers in rax decides; bit 33 of it is as good as a coin. Each way of a
 * conditional branch has a jump, so that both are as long and lead through different code: of a
 * branch to the next instruction nothing but the flags would tell the direction. */
#define WAYS "jmp 3f\n2: jmp 3f\n3:"
#define COIN "imul %%rbx, %%rax\n add %%rcx, %%rax\n"
#define SEED "mov $0x5851f42d4c957f2d, %%rbx\n mov $0x14057b7ef767814f, %%rcx\n mov $42, %%eax\n"
LOOP(branch_taken, "", TIMES(16, "jmp 2f\n2:"))
LOOP(branch_not_taken, "xor %%eax, %%eax\n inc %%eax\n", TIMES(8, "test %%eax, %%eax\n jz 1b"))
LOOP(branch_coin, SEED, COIN "bt $33, %%rax\n jc 2f\n" WAYS)
LOOP(branch_alternating, "xor %%eax, %%eax\n", "xor $1, %%eax\n test %%eax, %%eax\n jz 2f\n" WAYS)
LOOP(branch_period_32, "mov $0xd2a55b16, %%eax\n", "rol $1, %%eax\n bt $0, %%eax\n jc 2f\n" WAYS)
LOOP(branch_eighth, SEED, COIN "mov %%rax, %%rdx\n shr $33, %%rdx\n test $7, %%dl\n jz 2f\n" WAYS)

/* Indirect jumps: each target has a jump back, so every way is as long. */
#define TARGETS4 "2: jmp 6f\n3: jmp 6f\n4: jmp 6f\n5: jmp 6f\n6:\n"
#define TABLE4 "lea 9f(%%rip), %%rdi\n jmp 8f\n.p2align 3\n9: .long 2f-9b, 3f-9b, 4f-9b, 5f-9b\n8:\n"
/* The table is laid inside the loop's text by the macro's `before`, hence the forward labels. */
LOOP(indirect_coin, SEED TABLE4,
     COIN "mov %%rax, %%rdx\n shr $33, %%rdx\n and $3, %%edx\n movslq (%%rdi,%%rdx,4), %%rsi\n"
     "add %%rdi, %%rsi\n jmp *%%rsi\n" TARGETS4)
LOOP(indirect_same, SEED TABLE4,
     "movslq 8(%%rdi), %%rsi\n add %%rdi, %%rsi\n jmp *%%rsi\n" TARGETS4)
LOOP(indirect_cycle, "xor %%edx, %%edx\n" TABLE4,
     "inc %%edx\n and $3, %%edx\n movslq (%%rdi,%%rdx,4), %%rsi\n add %%rdi, %%rsi\n"
     "jmp *%%rsi\n" TARGETS4)
LOOP(indirect_alternating, "xor %%edx, %%edx\n" TABLE4,
     "xor $1, %%edx\n movslq (%%rdi,%%rdx,4), %%rsi\n add %%rdi, %%rsi\n jmp *%%rsi\n" TARGETS4)
LOOP(return_flat, "jmp 3f\n2: ret\n3:\n", TIMES(8, "call 2b"))
LOOP(return_deep, "jmp 3f\n2: dec %%eax\n jz 4f\n call 2b\n4: ret\n3:\n",
     "mov $8, %%eax\n call 2b\n")
LOOP(return_too_deep, "jmp 3f\n2: dec %%eax\n jz 4f\n call 2b\n4: ret\n3:\n",
     "mov $64, %%eax\n call 2b\n")

LOOP(return_called_from_two, "jmp 3f\n2: nop\n ret\n3:\n", "call 2b\n call 2b\n")

/* Store forwarding. */
LOOP(forward_same, ONES, TIMES(8, "mov %%rax, (%%r13)\n mov (%%r13), %%rax"))
LOOP(forward_low_half, ONES, TIMES(8, "mov %%rax, (%%r13)\n mov (%%r13), %%eax"))
LOOP(forward_high_half, ONES, TIMES(8, "mov %%rax, (%%r13)\n mov 4(%%r13), %%eax"))
LOOP(forward_fails, ONES,
     TIMES(8, "mov %%eax, (%%r13)\n mov %%eax, 4(%%r13)\n mov (%%r13), %%rax"))
LOOP(forward_vector, DOUBLES, TIMES(8, "movups %%xmm0, (%%r13)\n movups (%%r13), %%xmm0"))
LOOP(forward_crossing, ONES, TIMES(8, "mov %%rax, 60(%%r13)\n mov 60(%%r13), %%rax"))

/* Dividers. */
#define DIVIDE "mov $7, %%ebx\n mov $1000003, %%eax\n xor %%edx, %%edx\n"
LOOP(divide_32, DIVIDE, TIMES(4, "xor %%edx, %%edx\n or $0x40000000, %%eax\n div %%ebx"))
LOOP(divide_64, DIVIDE "mov $0x4000000000000000, %%rcx\n",
     TIMES(4, "xor %%edx, %%edx\n or %%rcx, %%rax\n div %%rbx"))
LOOP(divide_signed, DIVIDE, TIMES(4, "cltd\n or $0x40000000, %%eax\n idiv %%ebx"))
/* Operands that no early exit knows: x becomes 1.7 / x and back, never small, never one. */
#define AWKWARD "mov $0x3ffb333333333333, %%rax\n movq %%rax, %%xmm1\n movq %%rax, %%xmm4\n" \
    "mov $0x3ff3a1b2c3d4e5f6, %%rax\n movq %%rax, %%xmm0\n movq %%rax, %%xmm5\n"
LOOP(divide_double, AWKWARD,
     TIMES(2, "movapd %%xmm1, %%xmm2\n divsd %%xmm0, %%xmm2\n movapd %%xmm1, %%xmm0\n"
              "divsd %%xmm2, %%xmm0"))
LOOP(divide_doubles_apart, AWKWARD,
     "movapd %%xmm4, %%xmm0\n divsd %%xmm5, %%xmm0\n movapd %%xmm4, %%xmm1\n"
     "divsd %%xmm5, %%xmm1\n movapd %%xmm4, %%xmm2\n divsd %%xmm5, %%xmm2\n"
     "movapd %%xmm4, %%xmm3\n divsd %%xmm5, %%xmm3\n")
LOOP(square_root, AWKWARD, TIMES(4, "sqrtsd %%xmm0, %%xmm0\n addsd %%xmm1, %%xmm0"))

enum { KIB = 1024, MIB = 1024 * 1024 };

struct micro {
    const char *class, *name;
    void (*run)(uint64_t, char *);
    unsigned per_iteration; /* the closed form's slope, dec and jnz included */
    size_t arena;           /* bytes the loop walks; 0 when a page will do */
};

#define LEVEL(level, bytes) \
    {level, level "-chase", chase_one, 10, bytes}, \
    {level, level "-chase-2", chase_two, 18, bytes}, \
    {level, level "-chase-4", chase_four, 34, bytes}, \
    {level, level "-chase-dirty", chase_dirty, 18, bytes}

static const struct micro MICROS[] = {
    {"chains", "chain-add", chain_add, 18, 0},
    {"chains", "chain-imul", chain_imul, 18, 0},
    {"chains", "chain-lea", chain_lea, 18, 0},
    {"chains", "chain-rotate", chain_rotate, 18, 0},
    {"chains", "chain-adc", chain_adc, 18, 0},
    {"chains", "chain-addsd", chain_addsd, 18, 0},
    {"chains", "chain-mulsd", chain_mulsd, 18, 0},
    {"chains", "chain-crossing", chain_crossing, 18, 0},
    {"ports", "port-add", port_add, 18, 0},
    {"ports", "port-imul", port_imul, 18, 0},
    {"ports", "port-shift", port_shift, 18, 0},
    {"ports", "port-load", port_load, 18, 0},
    {"ports", "port-store", port_store, 18, 0},
    {"ports", "port-paddq", port_paddq, 18, 0},
    {"ports", "port-mulpd", port_mulpd, 18, 0},
    {"ports", "port-nop", port_nop, 18, 0},
    {"ports", "port-mixed", port_mixed, 10, 0},
    LEVEL("l1", 16 * KIB),
    LEVEL("l2", 256 * KIB),
    LEVEL("l3", 4 * MIB),
    LEVEL("memory", 128 * MIB),
    {"streams", "stream-read", stream_read, 13, 32 * MIB},
    {"streams", "stream-write", stream_write, 9, 32 * MIB},
    {"streams", "stream-copy", stream_copy, 9, 32 * MIB},
    {"streams", "stream-sum", stream_sum, 9, 32 * MIB},
    {"streams", "stream-page", stream_page, 6, 32 * MIB},
    {"branches", "branch-taken", branch_taken, 18, 0},
    {"branches", "branch-not-taken", branch_not_taken, 18, 0},
    {"branches", "branch-coin", branch_coin, 7, 0},
    {"branches", "branch-alternating", branch_alternating, 6, 0},
    {"branches", "branch-period-32", branch_period_32, 6, 0},
    {"branches", "branch-eighth", branch_eighth, 9, 0},
    {"indirect", "indirect-coin", indirect_coin, 11, 0},
    {"indirect", "indirect-same", indirect_same, 6, 0},
    {"indirect", "indirect-cycle", indirect_cycle, 8, 0},
    {"indirect", "indirect-alternating", indirect_alternating, 7, 0},
    {"returns", "return-flat", return_flat, 18, 0},
    {"returns", "return-deep", return_deep, 35, 0},
    {"returns", "return-too-deep", return_too_deep, 259, 0},
    {"returns", "return-called-from-two", return_called_from_two, 8, 0},
    {"forwarding", "forward-same", forward_same, 18, 0},
    {"forwarding", "forward-low-half", forward_low_half, 18, 0},
    {"forwarding", "forward-high-half", forward_high_half, 18, 0},
    {"forwarding", "forward-fails", forward_fails, 26, 0},
    {"forwarding", "forward-vector", forward_vector, 18, 0},
    {"forwarding", "forward-crossing", forward_crossing, 18, 0},
    {"dividers", "divide-32", divide_32, 14, 0},
    {"dividers", "divide-64", divide_64, 14, 0},
    {"dividers", "divide-signed", divide_signed, 14, 0},
    {"dividers", "divide-double", divide_double, 10, 0},
    {"dividers", "divide-doubles-apart", divide_doubles_apart, 10, 0},
    {"dividers", "square-root", square_root, 10, 0},
};

/* Links the arena's lines into one random cycle; words 1 to 3 of the first line start further
 * chases a quarter of the cycle apart. */
static void weave(char *arena, size_t bytes)
{
    size_t lines = bytes / 64;
    uint32_t *order = malloc(lines * sizeof *order);
    if (!order) {
        fprintf(stderr, "micro: no memory\n");
        exit(1);
    }
    for (size_t i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    uint64_t state = 88172645463325252u;
    for (size_t i = lines - 1; i > 0; i--) { /* line 0 stays first */
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        size_t j = 1 + state % i;
        uint32_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (size_t i = 0; i < lines; i++)
        *(char **)(arena + 64 * (size_t)order[i]) = arena + 64 * (size_t)order[(i + 1) % lines];
    for (size_t q = 1; q < 4; q++)
        ((char **)arena)[q] = arena + 64 * (size_t)order[q * lines / 4];
    free(order);
}

int main(int argc, char **argv)
{
    size_t count = sizeof MICROS / sizeof *MICROS;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            printf("%s %s %u\n", MICROS[i].class, MICROS[i].name, MICROS[i].per_iteration);
        return 0;
    }
    uint64_t n = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (n == 0) {
        fprintf(stderr, "usage: micro NAME N, or micro --list\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        const struct micro *m = &MICROS[i];
        if (strcmp(argv[1], m->name) != 0)
            continue;
        size_t bytes = m->arena ? m->arena : 4096;
        char *arena = aligned_alloc(4096, bytes);
        if (!arena) {
            fprintf(stderr, "micro: no memory\n");
            return 1;
        }
        memset(arena, 0, bytes);
        if (strstr(m->name, "chase"))
            weave(arena, bytes);
        m->run(n, arena);
        printf("%s %llu\n", m->name, (unsigned long long)n);
        return 0;
    }
    fprintf(stderr, "micro: no loop is called %s; micro --list names them\n", argv[1]);
    return 2;
}

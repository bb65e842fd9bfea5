/* STREAM's copy: one array into another, eight bytes at a time.
 *
 *   copy MIB TIMES           copies MIB mebibytes TIMES times, prints a checksum
 *
 * Scalar on purpose, and not turned into memcpy, so that the loop is the same five instructions
 * on every machine.
 */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, optimize("no-tree-vectorize", "no-tree-loop-distribute-patterns")))
static void copy(double *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i];
}

int main(int argc, char **argv)
{
    long mib = argc > 1 ? atol(argv[1]) : 0, times = argc > 2 ? atol(argv[2]) : 0;
    if (mib < 1 || mib > 1024 || times < 1) {
        fprintf(stderr, "usage: copy MIB TIMES\n");
        return 2;
    }
    size_t count = (size_t)mib * 1024 * 1024 / sizeof(double);
    double *a = malloc(count * sizeof *a), *b = calloc(count, sizeof *b);
    if (!a || !b) {
        fprintf(stderr, "copy: no memory for two arrays of %ld MiB\n", mib);
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        a[i] = (double)(i % 1009);
    for (long t = 0; t < times; t++) {
        copy(b, a, count);
        /* The next round must not be the same copy, or a compiler could drop one. */
        a[(size_t)t % count] = (double)t;
        copy(a, b, count / 64);
    }
    double sum = 0.0;
    for (size_t i = 0; i < count; i += 64)
        sum += b[i] + a[i];
    printf("copy %ld %ld %.0f\n", mib, times, sum);
    return 0;
}

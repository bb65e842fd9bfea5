/* Loops of floating-point multiplications and additions over large arrays.
 *
 *   loops KIND POWER THREADS [quiet]     2^POWER iterations in each thread, prints a checksum
 *
 *   tiled     stays within a tile that fits a first-level cache for many passes
 *   untiled   sweeps through the arrays from end to end
 *   indirect  takes its operands from places drawn at random, the same ones every time
 *
 * An iteration is eight multiplications and additions. The arrays begin as zeroes that nobody wrote,
 * so that the program is its loop and nothing else; a longer run begins as a shorter one.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 1 << 18, TILE = 512, PASSES = 32, WIDTH = 8 };

struct work {
    double *a, *b, *c;
    long iterations;
    const char *kind;
};

#define SCALAR __attribute__((noinline, optimize("no-tree-vectorize")))

SCALAR static void sweep(double *c, const double *a, const double *b)
{
    for (int k = 0; k < WIDTH; k++)
        c[k] += a[k] * b[k] + 1.0;
}

SCALAR static void gather(double *c, const double *a, const double *b, uint64_t *draw)
{
    for (int k = 0; k < WIDTH; k++) {
        *draw = *draw * 6364136223846793005u + 1442695040888963407u;
        c[k] += a[*draw >> 46] * b[*draw >> 28 & (LENGTH - 1)] + 1.0;
    }
}

static void *run(void *argument)
{
    struct work *work = argument;
    uint64_t draw = 1;
    long per_pass = TILE / WIDTH, per_sweep = LENGTH / WIDTH;
    for (long i = 0; i < work->iterations; i++) {
        long at;
        if (!strcmp(work->kind, "tiled"))
            at = (i / (per_pass * PASSES) * per_pass + i % per_pass) % per_sweep;
        else
            at = i % per_sweep;
        at *= WIDTH;
        if (!strcmp(work->kind, "indirect"))
            gather(work->c + at, work->a, work->b, &draw);
        else
            sweep(work->c + at, work->a + at, work->b + at);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct work works[16];
    pthread_t threads[16];
    const char *kind = argc > 1 ? argv[1] : "";
    long power = argc > 2 ? atol(argv[2]) : -1, count = argc > 3 ? atol(argv[3]) : 0;
    if ((strcmp(kind, "tiled") && strcmp(kind, "untiled") && strcmp(kind, "indirect")) ||
        power < 0 || power > 30 || count < 1 || count > 16) {
        fprintf(stderr, "usage: loops tiled|untiled|indirect POWER THREADS [quiet]\n");
        return 2;
    }
    for (long t = 0; t < count; t++) {
        double *all = calloc(3 * (size_t)LENGTH, sizeof *all);
        if (!all) {
            fprintf(stderr, "loops: no memory\n");
            return 1;
        }
        works[t] = (struct work){ all, all + LENGTH, all + 2 * LENGTH, 1L << power, kind };
        if (t > 0 && pthread_create(&threads[t], NULL, run, &works[t])) {
            fprintf(stderr, "loops: no thread\n");
            return 1;
        }
    }
    run(&works[0]);
    double sum = 0.0;
    for (long t = 0; t < count; t++) {
        if (t > 0)
            pthread_join(threads[t], NULL);
        for (long i = 0; i < TILE; i++)
            sum += works[t].c[i];
    }
    if (argc > 4)
        return sum < 0.0;
    printf("%s 2^%ld x %ld: %.0f\n", kind, power, count, sum);
    return 0;
}

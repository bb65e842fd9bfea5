/* A neural network's scan: every pass reads a weight matrix much larger than the first-level
 * cache by columns, so that a load seldom finds its line.
 *
 *   art NEURONS PASSES       prints the winners' checksum
 *
 * NEURONS columns of 1,024 inputs, weights of 8 bytes: 1,000 neurons are 8 MB
 * upwards and 8 MB downwards. About 58 % of its loads miss a first-level cache of 32 KiB.
 */
#include <stdio.h>
#include <stdlib.h>

enum { INPUTS = 1024 };

/* Scalar, so that the share of loads that miss does not depend on the compiler's vectors. */
#define SCALAR __attribute__((noinline, optimize("no-tree-vectorize")))

SCALAR static double match(const double *weight, const double *input, int neurons, int neuron)
{
    double sum = 0.0;
    const double *w = weight + neuron;
    for (int i = 0; i < INPUTS; i++, w += neurons)
        sum += *w * input[i];
    return sum;
}

/* How well a neuron's expectation, its weights downwards, agrees with what it receives. */
SCALAR static double resonance(const double *up, const double *down, const double *input,
                               int neurons, int neuron)
{
    double sum = 0.0;
    const double *u = up + neuron, *d = down + neuron;
    for (int i = 0; i < INPUTS; i++, u += neurons, d += neurons)
        sum += *u * *d * input[i];
    return sum;
}

SCALAR static void learn(double *weight, const double *input, int neurons, int neuron)
{
    double *w = weight + neuron;
    for (int i = 0; i < INPUTS; i++, w += neurons)
        *w = 0.9 * *w + 0.1 * input[i];
}

int main(int argc, char **argv)
{
    int neurons = argc > 1 ? atoi(argv[1]) : 0, passes = argc > 2 ? atoi(argv[2]) : 0;
    if (neurons < 1 || neurons > 100000 || passes < 1) {
        fprintf(stderr, "usage: art NEURONS PASSES\n");
        return 2;
    }
    double *up = malloc((size_t)neurons * INPUTS * sizeof *up), input[INPUTS];
    double *down = malloc((size_t)neurons * INPUTS * sizeof *down);
    if (!up || !down) {
        fprintf(stderr, "art: no memory for %d neurons\n", neurons);
        return 1;
    }
    unsigned state = 271828182;
    for (size_t w = 0; w < (size_t)neurons * INPUTS; w++) {
        state = state * 1664525u + 1013904223u;
        up[w] = (double)(state >> 12) / (1 << 20);
        down[w] = 1.0 - up[w];
    }
    unsigned checksum = 0;
    for (int pass = 0; pass < passes; pass++) {
        for (int i = 0; i < INPUTS; i++)
            input[i] = (double)((i * 37 + pass * 101) % 256) / 256.0;
        int winner = 0;
        double best = -1.0;
        for (int visit = 0; visit < neurons; visit++) {
            /* A prime's steps: neighbours in a line are not visited one after the other. */
            int n = (int)((long)visit * 7919 % neurons);
            double value = match(up, input, neurons, n);
            /* Three neurons in eight are committed; only those have an expectation. */
            if (n % 8 < 3)
                value += 0.5 * resonance(up, down, input, neurons, n);
            if (value > best) {
                best = value;
                winner = n;
            }
        }
        learn(up, input, neurons, winner);
        learn(down, input, neurons, winner);
        checksum = checksum * 31u + (unsigned)winner;
    }
    printf("art %d %d %u\n", neurons, passes, checksum);
    return 0;
}

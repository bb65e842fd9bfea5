/* A multigrid solver's work: V-cycles of a 27-point stencil on cubes of 2^k + 2 points a side.
 *
 *   mgrid LEVELS CYCLES      finest cube 2^LEVELS, CYCLES V-cycles; prints the residual's norm
 *
 * Stresses floating-point adds over three-dimensional neighbourhoods. Scalar on purpose: wide
 * registers would make the kernel a different one on every machine.
 */
#include <stdio.h>
#include <stdlib.h>

#define AT(n, i, j, k) ((((size_t)(i) * ((n) + 2)) + (size_t)(j)) * ((n) + 2) + (size_t)(k))

static const double CENTRE = -8.0 / 3.0, EDGE = 1.0 / 6.0, CORNER = 1.0 / 12.0;

static double *grid(int n)
{
    double *g = calloc((size_t)(n + 2) * (n + 2) * (n + 2), sizeof *g);
    if (!g) {
        fprintf(stderr, "mgrid: no memory for a cube of %d\n", n);
        exit(1);
    }
    return g;
}

static inline double neighbours(const double *u, int n, int i, int j, int k, double *corners)
{
    double edges = 0.0, far = 0.0;
    for (int a = -1; a <= 1; a += 2) {
        edges += u[AT(n, i + a, j, k - 1)] + u[AT(n, i + a, j, k + 1)];
        edges += u[AT(n, i, j + a, k - 1)] + u[AT(n, i, j + a, k + 1)];
        edges += u[AT(n, i + a, j - 1, k)] + u[AT(n, i + a, j + 1, k)];
        far += u[AT(n, i + a, j - 1, k - 1)] + u[AT(n, i + a, j - 1, k + 1)];
        far += u[AT(n, i + a, j + 1, k - 1)] + u[AT(n, i + a, j + 1, k + 1)];
    }
    *corners = far;
    return edges;
}

/* r = v - A u */
__attribute__((noinline)) static void residual(const double *u, const double *v, double *r, int n)
{
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++)
            for (int k = 1; k <= n; k++) {
                double corners, edges = neighbours(u, n, i, j, k, &corners);
                r[AT(n, i, j, k)] =
                    v[AT(n, i, j, k)] - CENTRE * u[AT(n, i, j, k)] - EDGE * edges - CORNER * corners;
            }
}

/* u += S r */
__attribute__((noinline)) static void smooth(double *u, const double *r, int n)
{
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++)
            for (int k = 1; k <= n; k++) {
                double corners, edges = neighbours(r, n, i, j, k, &corners);
                u[AT(n, i, j, k)] +=
                    -3.0 / 8.0 * r[AT(n, i, j, k)] - 1.0 / 64.0 * edges - 1.0 / 512.0 * corners;
            }
}

__attribute__((noinline)) static void restrict_to(const double *fine, double *coarse, int n)
{
    int half = n / 2;
    for (int i = 1; i <= half; i++)
        for (int j = 1; j <= half; j++)
            for (int k = 1; k <= half; k++) {
                double corners, edges = neighbours(fine, n, 2 * i, 2 * j, 2 * k, &corners);
                coarse[AT(half, i, j, k)] =
                    0.5 * fine[AT(n, 2 * i, 2 * j, 2 * k)] + 0.0625 * edges + 0.03125 * corners;
            }
}

__attribute__((noinline)) static void prolong(const double *coarse, double *fine, int n)
{
    int half = n / 2;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++)
            for (int k = 1; k <= n; k++)
                fine[AT(n, i, j, k)] += 0.125 * (coarse[AT(half, (i + 1) / 2, (j + 1) / 2, (k + 1) / 2)] +
                                                 coarse[AT(half, i / 2, j / 2, k / 2)]);
}

int main(int argc, char **argv)
{
    int levels = argc > 1 ? atoi(argv[1]) : 0, cycles = argc > 2 ? atoi(argv[2]) : 0;
    if (levels < 2 || levels > 8 || cycles < 1) {
        fprintf(stderr, "usage: mgrid LEVELS(2-8) CYCLES\n");
        return 2;
    }
    double *u[9], *v[9], *r[9];
    for (int l = 1; l <= levels; l++) {
        u[l] = grid(1 << l);
        v[l] = grid(1 << l);
        r[l] = grid(1 << l);
    }
    int n = 1 << levels;
    unsigned state = 314159265;
    for (int s = 0; s < 20; s++) {
        int at[3];
        for (int d = 0; d < 3; d++) {
            state = state * 1664525u + 1013904223u;
            at[d] = 1 + (int)((state >> 8) % (unsigned)n);
        }
        v[levels][AT(n, at[0], at[1], at[2])] = s % 2 ? 1.0 : -1.0;
    }
    for (int c = 0; c < cycles; c++) {
        residual(u[levels], v[levels], r[levels], n);
        for (int l = levels; l > 1; l--) {
            restrict_to(r[l], r[l - 1], 1 << l);
            size_t points = (size_t)((1 << (l - 1)) + 2);
            for (size_t p = 0; p < points * points * points; p++)
                u[l - 1][p] = 0.0;
        }
        smooth(u[1], r[1], 2);
        for (int l = 2; l <= levels; l++) {
            prolong(u[l - 1], u[l], 1 << l);
            smooth(u[l], r[l], 1 << l);
        }
    }
    residual(u[levels], v[levels], r[levels], n);
    double sum = 0.0;
    for (size_t p = 0; p < (size_t)(n + 2) * (n + 2) * (n + 2); p++)
        sum += r[levels][p] * r[levels][p];
    printf("mgrid %d %d %.10e\n", levels, cycles, sum);
    return 0;
}

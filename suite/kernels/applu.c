/* A block solver's work: lower-upper sweeps over a cube whose every point carries a dense 5x5
 * system, each eliminated and solved where it stands.
 *
 *   applu SIDE SWEEPS        prints the sum of the solution
 */
#include <stdio.h>
#include <stdlib.h>

typedef double Block[5][5];

static void block_of(Block a, int i, int j, int k)
{
    for (int m = 0; m < 5; m++) {
        for (int n = 0; n < 5; n++)
            a[m][n] = 0.01 * ((i * 7 + j * 3 + k * 5 + m * 11 + n * 13) % 17 - 8);
        a[m][m] += 2.0 + 0.1 * m;
    }
}

/* Eliminates a, carrying b along, then substitutes back: b becomes the solution. The matrix is
 * diagonally dominant, so no pivot is sought. */
__attribute__((noinline)) static void solve(Block a, double b[5])
{
    for (int p = 0; p < 5; p++) {
        double inverse = 1.0 / a[p][p];
        for (int m = p + 1; m < 5; m++) {
            double factor = a[m][p] * inverse;
            for (int n = p + 1; n < 5; n++)
                a[m][n] -= factor * a[p][n];
            b[m] -= factor * b[p];
        }
    }
    for (int m = 4; m >= 0; m--) {
        double sum = b[m];
        for (int n = m + 1; n < 5; n++)
            sum -= a[m][n] * b[n];
        b[m] = sum / a[m][m];
    }
}

#define AT(i, j, k) (((size_t)(i) * (side + 2) + (size_t)(j)) * (side + 2) + (size_t)(k))

__attribute__((noinline)) static void sweep(double (*u)[5], int side, int direction)
{
    int first = direction > 0 ? 1 : side, last = direction > 0 ? side + 1 : 0;
    for (int i = first; i != last; i += direction)
        for (int j = first; j != last; j += direction)
            for (int k = first; k != last; k += direction) {
                Block a;
                double b[5];
                block_of(a, i, j, k);
                const double *x = u[AT(i - direction, j, k)], *y = u[AT(i, j - direction, k)];
                const double *z = u[AT(i, j, k - direction)], *here = u[AT(i, j, k)];
                for (int m = 0; m < 5; m++)
                    b[m] = here[m] + 0.3 * (x[m] + y[(m + 1) % 5] + z[(m + 2) % 5]);
                solve(a, b);
                for (int m = 0; m < 5; m++)
                    u[AT(i, j, k)][m] = 0.5 * here[m] + 0.5 * b[m];
            }
}

int main(int argc, char **argv)
{
    int side = argc > 1 ? atoi(argv[1]) : 0, sweeps = argc > 2 ? atoi(argv[2]) : 0;
    if (side < 2 || side > 200 || sweeps < 1) {
        fprintf(stderr, "usage: applu SIDE(2-200) SWEEPS\n");
        return 2;
    }
    size_t points = (size_t)(side + 2) * (side + 2) * (side + 2);
    double(*u)[5] = calloc(points, sizeof *u);
    if (!u) {
        fprintf(stderr, "applu: no memory for a cube of %d\n", side);
        return 1;
    }
    for (size_t p = 0; p < points; p++)
        for (int m = 0; m < 5; m++)
            u[p][m] = 1.0 + 0.001 * (double)((p * 5 + (size_t)m) % 97);
    for (int s = 0; s < sweeps; s++) {
        sweep(u, side, 1);
        sweep(u, side, -1);
    }
    double sum = 0.0;
    for (size_t p = 0; p < points; p++)
        for (int m = 0; m < 5; m++)
            sum += u[p][m];
    printf("applu %d %d %.10e\n", side, sweeps, sum);
    return 0;
}

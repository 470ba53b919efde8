/*
 * The kernel: one block of a binomial lattice for a European put.
 *
 * A node (level, column) has seen `level` moves of which `column` went up. Its value follows from
 * (level + 1, column) and (level + 1, column + 1). Levels go down from the last one to 0, where
 * column 0 holds the price. This file knows neither tasks nor files; block.py calls it.
 */
#include <math.h>

static const double SPOT = 100, STRIKE = 100, YEARS = 1, VOLATILITY = 0.3, RATE = 0.03;

/* Factors of a move up and down by Jarrow and Rudd. */
struct moves {
    double up, down;
};

static struct moves moves_of(long levels)
{
    double step = YEARS / levels;
    double drift = (RATE - VOLATILITY * VOLATILITY / 2) * step;
    double spread = VOLATILITY * sqrt(step);
    return (struct moves){exp(drift + spread), exp(drift - spread)};
}

/* Fills `row` with what the put is worth at the last level, for `columns` columns from `first`. */
void payoff(double *row, long levels, long first, long columns)
{
    struct moves moves = moves_of(levels);
    for (long i = 0; i < columns; i++) {
        long ups = first + i;
        double spot = SPOT * pow(moves.up, ups) * pow(moves.down, levels - ups);
        row[i] = fmax(STRIKE - spot, 0);
    }
}

/*
 * Takes `row` from level `high` down to level `low`. right[k] is the value at level high - k of
 * the column behind the last; left[k] is set to that of the first column. Both have high - low
 * elements. Nodes outside the triangle are left as they are and never used.
 */
void descend(double *row, const double *right, double *left, long levels, long first, long columns,
             long high, long low)
{
    struct moves moves = moves_of(levels);
    double growth = exp(RATE * YEARS / levels);
    double chance = (growth - moves.down) / (moves.up - moves.down);
    double up = chance / growth, down = (1 - chance) / growth;
    for (long level = high - 1; level >= low; level--) {
        long inside = level - first + 1 < columns ? level - first + 1 : columns;
        left[high - 1 - level] = row[0];
        for (long i = 0; i < inside && i < columns - 1; i++)
            row[i] = up * row[i + 1] + down * row[i];
        if (inside == columns)
            row[columns - 1] = up * right[high - 1 - level] + down * row[columns - 1];
    }
}

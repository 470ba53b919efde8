/* Assigns points to their nearest centres.
 *
 * points: count × dimensions doubles, row by row; centres: clusters × dimensions.
 * Adds each point to the row of sums of its cluster (clusters × dimensions) and counts it in counts
 * (clusters); returns the sum of the squared distances. Of equally near centres the first counts.
 */
#include <stddef.h>

static double squared_distance(const double *point, const double *centre, size_t dimensions)
{
    /* Eight sums at a time, so that the compiler may use vector instructions. */
    double lanes[8] = {0.0};
    size_t axis = 0;
    for (; axis + 8 <= dimensions; axis += 8) {
        for (size_t lane = 0; lane < 8; lane++) {
            double apart = point[axis + lane] - centre[axis + lane];
            lanes[lane] += apart * apart;
        }
    }
    double total = 0.0;
    for (; axis < dimensions; axis++) {
        double apart = point[axis] - centre[axis];
        total += apart * apart;
    }
    for (size_t lane = 0; lane < 8; lane++)
        total += lanes[lane];
    return total;
}

double assign(const double *points, size_t count, const double *centres, size_t clusters,
              size_t dimensions, double *sums, double *counts)
{
    double total = 0.0;
    for (size_t one = 0; one < count; one++) {
        const double *point = points + one * dimensions;
        size_t nearest = 0;
        double least = squared_distance(point, centres, dimensions);
        for (size_t cluster = 1; cluster < clusters; cluster++) {
            double apart = squared_distance(point, centres + cluster * dimensions, dimensions);
            if (apart < least) {
                least = apart;
                nearest = cluster;
            }
        }
        for (size_t axis = 0; axis < dimensions; axis++)
            sums[nearest * dimensions + axis] += point[axis];
        counts[nearest] += 1.0;
        total += least;
    }
    return total;
}

/* Event sets: a program counts its own threads. docs/API.md tells how.
 *
 * Made by `WHITHER_BLESS=1 cargo test -p counters-c`; do not edit.
 * A set belongs to the thread that made it. Every call returns WHITHER_OK or a code below 0. */
#ifndef WHITHER_COUNTERS_H
#define WHITHER_COUNTERS_H

#ifdef __cplusplus
extern "C" {
#endif

#define WHITHER_OK           (0)  /* done */
#define WHITHER_EINVAL       (-1)  /* an argument makes no sense */
#define WHITHER_ENOEVST      (-2)  /* there is no such event set */
#define WHITHER_EOWNER       (-3)  /* the event set belongs to another thread */
#define WHITHER_EISRUN       (-4)  /* the event set is running */
#define WHITHER_ENOTRUN      (-5)  /* the event set is not running */
#define WHITHER_EEMPTY       (-6)  /* the event set has no events */
#define WHITHER_ETWICE       (-7)  /* the event is in the event set already */
#define WHITHER_ENOEVNT      (-8)  /* there is no such event */
#define WHITHER_EPERM        (-9)  /* the event may not be counted by this user */
#define WHITHER_ECNFLCT      (-10)  /* the events cannot be counted */
#define WHITHER_ESYS         (-11)  /* a system call failed */
#define WHITHER_EBUG         (-12)  /* a bug in this library; nothing was lost */

/* whither_value.state */
#define WHITHER_COUNTED      0  /* the value is there */
#define WHITHER_NO_TURN      1  /* not counted: its turn never came; this is not 0 */
#define WHITHER_NEVER_RAN    2  /* not counted: its group never had its counters */
#define WHITHER_REFUSED      3  /* not counted: the kernel would not open it */

/* What a set says of one event. */
typedef struct whither_value {
    double value;            /* the estimated total */
    double uncertainty;      /* its standard uncertainty; 0 where it was counted all the time */
    double share;            /* the share of time in which it was counted */
    long long counted;       /* what was counted in that share */
    int state;               /* WHITHER_COUNTED, or why there is no value */
} whither_value;

/* Makes an event set of the calling thread. */
int whither_create_eventset(int *set);

/* Adds an event by its name: `page-faults`, `cycles:u`, `r01c2`, `mem:0x7ffc1000:w`. */
int whither_add_event(int set, const char *name);

/* How many events the set has, or an error below 0. */
int whither_num_events(int set);

/* Whether the set runs: 1 or 0, or an error below 0. */
int whither_is_running(int set);

/* Starts counting from nought. */
int whither_start(int set);

/* Reads the totals so far into an array with room for `room` values, while the set runs or of
 * its last run. Values come in the order in which events were added. */
int whither_read(int set, whither_value *values, int room);

/* Adds the totals so far to an array and counts from nought again. */
int whither_accum(int set, whither_value *values, int room);

/* Counts from nought again, without stopping. */
int whither_reset(int set);

/* Stops; reads the totals as whither_read does. Without an array it only stops. */
int whither_stop(int set, whither_value *values, int room);

/* Takes all events out of a set that does not run. */
int whither_cleanup_eventset(int set);

/* Destroys a set that does not run; its number becomes 0, which is never a set. */
int whither_destroy_eventset(int *set);

/* How the calling thread takes turns: slices of so many nanoseconds of its own time (0 for the
 * default of 10 ms), and only so many events at a time (0 for what the machine can do). */
int whither_set_multiplex(long long slice_ns, int counters);

/* What a code means; the text lives as long as the program. */
const char *whither_strerror(int code);

#ifdef __cplusplus
}
#endif

#endif

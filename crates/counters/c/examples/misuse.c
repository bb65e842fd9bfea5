/* Every wrong call gets a code, and nothing is undefined. */
#include <pthread.h>
#include <stdio.h>
#include <whither_counters.h>

#define EXPECT(call, code)                                                        \
    do {                                                                          \
        int got = (call);                                                         \
        if (got != (code)) {                                                      \
            fprintf(stderr, "%s: %d instead of %d\n", #call, got, (code));        \
            return 1;                                                             \
        }                                                                         \
    } while (0)

static int set;

static void *stranger(void *answer) {
    *(int *)answer = whither_start(set);
    return NULL;
}

int main(void) {
    whither_value values[2] = {{0}};
    int nowhere = 12345, answer = 1;
    pthread_t thread;

    EXPECT(whither_create_eventset(NULL), WHITHER_EINVAL);
    EXPECT(whither_start(nowhere), WHITHER_ENOEVST);
    EXPECT(whither_destroy_eventset(&nowhere), WHITHER_ENOEVST);
    EXPECT(whither_destroy_eventset(NULL), WHITHER_EINVAL);
    EXPECT(whither_create_eventset(&set), WHITHER_OK);
    EXPECT(whither_start(set), WHITHER_EEMPTY);
    EXPECT(whither_add_event(set, NULL), WHITHER_EINVAL);
    EXPECT(whither_add_event(set, "no-such-event"), WHITHER_ENOEVNT);
    EXPECT(whither_add_event(set, "page-faults:u"), WHITHER_OK);
    EXPECT(whither_add_event(set, "page-faults:u"), WHITHER_ETWICE);
    EXPECT(whither_num_events(set), 1);
    EXPECT(whither_stop(set, values, 2), WHITHER_ENOTRUN);
    EXPECT(whither_set_multiplex(-1, 0), WHITHER_EINVAL);
    EXPECT(whither_start(set), WHITHER_OK);
    EXPECT(whither_is_running(set), 1);
    EXPECT(whither_start(set), WHITHER_EISRUN);
    EXPECT(whither_set_multiplex(0, 0), WHITHER_EISRUN);
    EXPECT(whither_read(set, NULL, 2), WHITHER_EINVAL);
    EXPECT(whither_read(set, values, -1), WHITHER_EINVAL);
    EXPECT(whither_read(set, values, 0), WHITHER_EINVAL);
    EXPECT(whither_accum(set, values, 2), WHITHER_OK);
    EXPECT(whither_stop(set, values, 0), WHITHER_EINVAL);
    EXPECT(whither_is_running(set), 1);
    EXPECT(whither_cleanup_eventset(set), WHITHER_EISRUN);
    EXPECT(whither_destroy_eventset(&set), WHITHER_EISRUN);
    if (pthread_create(&thread, NULL, stranger, &answer)) return 1;
    if (pthread_join(thread, NULL)) return 1;
    EXPECT(answer, WHITHER_EOWNER);
    EXPECT(whither_stop(set, NULL, 0), WHITHER_OK);
    EXPECT(whither_destroy_eventset(&set), WHITHER_OK);
    EXPECT(set, 0);
    puts("all answered");
    return 0;
}

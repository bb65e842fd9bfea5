/* Two event sets, one inside the other. A hardware breakpoint counts writes to a word exactly. */
#include <stdio.h>
#include <whither_counters.h>

static volatile long word;

static void write_word(int times) {
    for (int i = 0; i < times; i++) word = i;
}

static int check(int code, const char *what) {
    if (code != WHITHER_OK) fprintf(stderr, "%s: %s\n", what, whither_strerror(code));
    return code;
}

int main(void) {
    int outer, inner;
    char name[64];
    whither_value value[1];

    snprintf(name, sizeof name, "mem:%p:w", (void *)&word);
    if (check(whither_create_eventset(&outer), "create") ||
        check(whither_create_eventset(&inner), "create") ||
        check(whither_add_event(outer, name), name) || check(whither_add_event(inner, name), name))
        return 1;

    if (check(whither_start(outer), "start")) return 1;
    write_word(600);
    if (check(whither_start(inner), "start")) return 1;
    write_word(500);
    if (check(whither_stop(inner, value, 1), "stop")) return 1;
    double inside = value[0].value;
    write_word(400);
    if (check(whither_stop(outer, value, 1), "stop")) return 1;

    if (value[0].state != WHITHER_COUNTED) return 1;
    printf("outer: %.0f writes\ninner: %.0f writes\n", value[0].value, inside);
    return whither_destroy_eventset(&outer) || whither_destroy_eventset(&inner);
}

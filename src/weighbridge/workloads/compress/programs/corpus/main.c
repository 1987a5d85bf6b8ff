/* Writes a file of so many bytes, always the same ones, and then becomes another program.
 *
 *   weighbridge-corpus BYTES FILE PROGRAM [ARGUMENT...]
 *
 * The bytes look like a text: lines of words out of a made-up vocabulary in which, as in languages, the word of rank r
 * comes about as often as 1/r (Zipf), with a number here and there. No library's random numbers are used, and no
 * floating point, so that the bytes are the same with every compiler, library and CPU.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS 8192
#define LONGEST 12
#define LINE 72
#define LARGEST (1ull << 40)

static char words[WORDS][LONGEST + 1];
static uint64_t state = 20170611;

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t drawn(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static void make_words(void)
{
    static const char consonants[] = "tnrsldhcmfpgbvwk", vowels[] = "eaiouyea";
    for (int word = 0; word < WORDS; word++) {
        int length = 2 + (int)(drawn() % (word < 64 ? 3 : LONGEST - 2));
        for (int at = 0; at < length; at++)
            words[word][at] = at % 2 ? vowels[drawn() % 8] : consonants[drawn() % 16];
    }
}

/* A rank below WORDS: first its octave, each alike, then a place in it. That is 1/r, in steps. */
static const char *word(void)
{
    unsigned octave = drawn() % 13;
    return words[(1u << octave) - 1 + drawn() % (1u << octave)];
}

static void fail(const char *what)
{
    fprintf(stderr, "weighbridge-corpus: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_text(const char *path, unsigned long long bytes)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail(path);
    unsigned long long left = bytes;
    int column = 0;
    while (left > 0) {
        char piece[32];
        int length = drawn() % 24 ? snprintf(piece, sizeof piece, "%s", word())
                                  : snprintf(piece, sizeof piece, "%u", (unsigned)(drawn() % 100000));
        column += length + 1;
        piece[length++] = column > LINE ? '\n' : ' ';
        column = column > LINE ? 0 : column;
        size_t now = (unsigned long long)length < left ? (size_t)length : (size_t)left;
        if (fwrite(piece, 1, now, file) != now)
            fail(path);
        left -= now;
    }
    if (fclose(file) != 0)
        fail(path);
}

int main(int argc, char **argv)
{
    char *rest = "";
    unsigned long long bytes = argc >= 4 ? strtoull(argv[1], &rest, 10) : 0;
    if (bytes == 0 || bytes > LARGEST || *rest != '\0') {
        fprintf(stderr, "usage: weighbridge-corpus BYTES FILE PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    make_words();
    write_text(argv[2], bytes);
    execvp(argv[3], argv + 3);
    fail(argv[3]);
}

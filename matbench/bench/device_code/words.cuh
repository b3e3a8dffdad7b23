// The type of a word: of WORD_BYTES bytes, or of 4 if that is not defined.
#if WORD_BYTES == 1
typedef unsigned char word;
#elif WORD_BYTES == 2
typedef unsigned short word;
#elif WORD_BYTES == 8
typedef size_t word;
#else
typedef unsigned word;
#endif

// The 128 threads that copy rows of 128 bytes, one after the other, as ring.cuh does.
#include <cstdio>
#include <cstring>
#include <vector>
#define __device__
#define __forceinline__ inline
static struct { int x; } threadIdx;
COPY

// How many elements differ from those of the matrix at their swizzled places, or lie beyond the rows.
template <typename Element> static int wrong(int rows, int wanted, int columns)
{
    const int across = 128 / sizeof(Element), pitch = across + 5;
    std::vector<Element> matrix(pitch * 300);
    for (size_t i = 0; i < matrix.size(); ++i)
        matrix[i] = static_cast<Element>(i % 113 + 1);
    std::vector<char> shared(rows * 128 + 16384, 77);
    for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x) {
        const int place = place_in_row<Element>();
        copy_rows(shared.data(), matrix.data() + place, pitch, rows, place < columns ? wanted : 0);
    }
    int count = 0;
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < across; ++column) {
            const int byte = column * sizeof(Element);
            Element found, there = 0;
            if (row < wanted && column < columns)
                there = matrix[row * pitch + column];
            std::memcpy(&found, &shared[row * 128 + (byte / 16 ^ row % 8) * 16 + byte % 16], sizeof found);
            count += found != there;
        }
    for (size_t i = rows * 128; i < shared.size(); ++i)
        count += shared[i] != 77;
    return count;
}

int main()
{
    int count = 0;
    for (int wanted : {-5, 0, 1, 15, 63, 300})
        for (int columns : {0, 1, 16, 200})
            count += wrong<double>(16, wanted, columns) + wrong<double>(128, wanted, columns)
                + wrong<float>(32, wanted, columns) + wrong<short>(64, wanted, columns)
                + wrong<char>(128, wanted, columns);
    std::printf("%d", count);
}

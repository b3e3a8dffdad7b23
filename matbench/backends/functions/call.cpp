// Stands below the file of a function on the host: with these, matbench calls it with values of its
// own, whatever the types of its parameters are.
#include <cstdio>
#include <exception>
#include <type_traits>

namespace matbench {

// An argument: a number, or an address.
struct Value {
    long long whole;
    double real;
    void *pointer;
};

template <typename T>
typename std::enable_if<std::is_integral<T>::value, T>::type number(const Value &value) {
    return static_cast<T>(value.whole);
}

template <typename T>
typename std::enable_if<std::is_floating_point<T>::value, T>::type number(const Value &value) {
    return static_cast<T>(value.real);
}

// A class: a number of 16 bits.
template <typename T>
typename std::enable_if<std::is_class<T>::value, T>::type number(const Value &value) {
    return T(static_cast<float>(value.real));
}

// A number that is passed by its address.
template <typename Pointer>
struct Stored {
    typedef typename std::remove_cv<typename std::remove_pointer<Pointer>::type>::type T;
    explicit Stored(const Value &value) : stored(number<T>(value)) {}
    Pointer address() { return &stored; }
    T stored;
};

// What went wrong in a call; empty if nothing did.
struct Report {
    char *text;
    int size;

    void say(const char *what) { std::snprintf(text, size, "%s", what); }

#ifdef __CUDACC__
    void check(cudaError_t code) {
        if (code != cudaSuccess) say(cudaGetErrorString(code));
    }
#endif
    // Other libraries' codes are enumerations, too; whole numbers may mean anything.
    template <typename Code>
    typename std::enable_if<std::is_enum<Code>::value>::type check(Code code) {
        if (static_cast<int>(code) != 0) std::snprintf(text, size, "returned code %d", code);
    }
    template <typename Result>
    typename std::enable_if<!std::is_enum<Result>::value>::type check(const Result &) {}
};

}  // namespace matbench

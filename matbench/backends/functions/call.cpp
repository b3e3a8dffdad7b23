// Stands below the file of a function on the host: calls it with matbench's values, whatever the types
// of its parameters are.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <type_traits>

namespace matbench {

// A number, an address, or none.
struct Value {
    long long whole;
    double real;
    void *pointer;
    bool is_null;
};

// A value as an argument of type T: a whole number, a real one, or a class of 16 bits.
template <typename T, typename = void>
struct Argument {
    Value value;
    operator T() const { return T(static_cast<float>(value.real)); }
};

template <typename T>
struct Argument<T, typename std::enable_if<std::is_arithmetic<T>::value>::type> {
    Value value;
    operator T() const {
        return std::is_integral<T>::value ? static_cast<T>(value.whole) : static_cast<T>(value.real);
    }
};

// Memory for a number that is passed by its address, such as alpha; none for other types.
template <typename T, bool is_number>
struct Stored {
    explicit Stored(const Value &) {}
    void *address() { return nullptr; }
};

template <typename T>
struct Stored<T, true> {
    explicit Stored(const Value &value) : number(Argument<T>{value}) {}
    void *address() { return &number; }
    T number;
};

template <typename T>
struct Argument<T *, void> {
    explicit Argument(const Value &given) : value(given), stored(given) {}
    operator T *() {
        void *address = value.pointer || value.is_null ? value.pointer : stored.address();
        return static_cast<T *>(address);
    }
    Value value;
    Stored<typename std::remove_cv<T>::type, std::is_arithmetic<T>::value> stored;
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

template <std::size_t... I>
struct Indices {};

template <std::size_t N, std::size_t... I>
struct Counted : Counted<N - 1, N - 1, I...> {};

template <std::size_t... I>
struct Counted<0, I...> : Indices<I...> {};

template <typename... P, std::size_t... I>
void call(void (*function)(P...), const Value *values, Report &, Indices<I...>) {
    function(Argument<typename std::decay<P>::type>{values[I]}...);
}

template <typename Result, typename... P, std::size_t... I>
void call(Result (*function)(P...), const Value *values, Report &report, Indices<I...>) {
    report.check(function(Argument<typename std::decay<P>::type>{values[I]}...));
}

template <typename Result, typename... P>
void run(Result (*function)(P...), const Value *values, Report report) {
    report.say("");
    try {
        call(function, values, report, Counted<sizeof...(P)>());
    } catch (const std::exception &error) {
        report.say(error.what()[0] ? error.what() : "threw an exception without a reason");
    } catch (...) {
        report.say("threw an exception");
    }
#ifdef __CUDACC__
    if (report.text[0] == 0) report.check(cudaGetLastError());
#endif
}

}  // namespace matbench

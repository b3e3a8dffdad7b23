void plain() {}
struct S { void method() {} friend void of(S &) {} };
class T { void other() {} friend void with(T &) {} };
void S::outside() {}
__device__ void device() {}
namespace space { void inner() {} }
int main() {}

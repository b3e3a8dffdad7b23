// Times a call with events that are only on this stack: no object of Python refers to them.
extern "C" {
int cuEventCreate(void **event, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuEventElapsedTime(float *ms, void *start, void *end);
int cuEventDestroy_v2(void *event);
void *PyObject_CallNoArgs(void *callable);
void Py_DecRef(void *object);

// The milliseconds from the end of what `before` enqueues to that of what `enqueue` does; `finish` waits
// for it. Negative if the driver reports an error. An exception of Python's ends it and stays set.
double matbench_time(void *stream, void *before, void *enqueue, void *finish) {
    auto call = [](void *callable) {
        void *result = PyObject_CallNoArgs(callable);
        if (result != nullptr) Py_DecRef(result);
        return result == nullptr;
    };
    void *start = nullptr, *end = nullptr;
    float ms = 0;
    int status;
    (status = cuEventCreate(&start, 0)) || (status = cuEventCreate(&end, 0)) || call(before) ||
        (status = cuEventRecord(start, stream)) || call(enqueue) ||
        (status = cuEventRecord(end, stream)) || call(finish) ||
        (status = cuEventElapsedTime(&ms, start, end));
    if (start != nullptr) cuEventDestroy_v2(start);
    if (end != nullptr) cuEventDestroy_v2(end);
    return status == 0 ? ms : -status;
}
}

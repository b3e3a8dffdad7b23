// Times a call with two events that are only on this stack: no object of Python refers to them, so the
// function that is called finds neither to record it again.
extern "C" {
int cuEventCreate(void **event, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuEventElapsedTime(float *ms, void *start, void *end);
int cuEventDestroy_v2(void *event);
void *PyObject_CallNoArgs(void *callable);
void Py_DecRef(void *object);
}

struct Event {
    void *handle = nullptr;
    ~Event() {
        if (handle != nullptr) cuEventDestroy_v2(handle);
    }
};

static bool is_called(void *callable) {
    void *result = PyObject_CallNoArgs(callable);
    if (result != nullptr) Py_DecRef(result);
    return result != nullptr;
}

// The milliseconds from when the device has done what `before` enqueued to when it has done what `enqueue`
// did. `finish` waits for that. Negative: an error of the driver. An exception of theirs stays set.
extern "C" double matbench_time(void *stream, void *before, void *enqueue, void *finish) {
    Event start, end;
    int status = cuEventCreate(&start.handle, 0);
    if (status == 0) status = cuEventCreate(&end.handle, 0);
    if (status == 0 && !is_called(before)) return 0;
    if (status == 0) status = cuEventRecord(start.handle, stream);
    if (status == 0 && !is_called(enqueue)) return 0;
    if (status == 0) status = cuEventRecord(end.handle, stream);
    if (status == 0 && !is_called(finish)) return 0;
    float ms = 0;
    if (status == 0) status = cuEventElapsedTime(&ms, start.handle, end.handle);
    return status == 0 ? ms : -status;
}

// Comes before MindSpore's own simulation of aclrtProcessReport, by being preloaded. A
// stream's callback thread calls it to wait, at most so many milliseconds, for work; in a
// simulation there is never any. MindSpore's returns at once, so that every stream keeps
// a core busy, and on a small machine nothing else gets on.

#include <algorithm>
#include <chrono>
#include <thread>

extern "C" int _ZN9mindspore6device6ascend27SimuFuncIaclrtProcessReportIiEET_i(
    int timeout) {
  std::this_thread::sleep_for(std::chrono::milliseconds(std::clamp(timeout, 1, 10)));
  return 0;
}

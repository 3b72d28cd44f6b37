#include "model/strategy/exchange/negotiation/tensor_fusion.hpp"

#include <deque>

namespace lockstep {

std::vector<std::vector<size_t>> fuse(std::span<const FusibleTensor> tensors, Bytes threshold) {
  std::deque<size_t> waiting;
  for (size_t index = 0; index < tensors.size(); ++index) {
    waiting.push_back(index);
  }
  std::vector<std::vector<size_t>> calls;
  while (!waiting.empty()) {
    const size_t first = waiting.front();
    waiting.pop_front();
    std::vector<size_t>& call = calls.emplace_back(1, first);
    if (!tensors[first].fuses) {
      continue;
    }
    Bytes total = tensors[first].bytes;
    Bytes skipped_bytes{};
    std::vector<size_t> skipped;
    while (!waiting.empty()) {
      const FusibleTensor& next = tensors[waiting.front()];
      if (next.fuses && next.alike == tensors[first].alike && total + next.bytes <= threshold) {
        total += next.bytes;
        call.push_back(waiting.front());
      } else {
        skipped_bytes += next.bytes;
        if (total + skipped_bytes > threshold) {
          break;
        }
        skipped.push_back(waiting.front());
      }
      waiting.pop_front();
    }
    waiting.insert(waiting.begin(), skipped.begin(), skipped.end());
  }
  return calls;
}

Bytes working_threshold(Bytes threshold, int32_t ranks_of_node) {
  constexpr int64_t unit = int64_t{64} * 8;
  const int64_t divisor = unit * ranks_of_node;
  return Bytes((threshold.count() + divisor - 1) / divisor * divisor);
}

}  // namespace lockstep

#include "backend/libtorch/tensor_memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/alignment.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstddef>
#include <cstring>

namespace lockstep::backend {

namespace {

/// Stands before the memory of a tensor, in a block that keeps the alignment: LibTorch frees by the
/// address alone.
struct Header {
  TensorMemory* counted_by = nullptr;
  int64_t bytes = 0;
};
constexpr size_t header_bytes = c10::gAlignment;
static_assert(sizeof(Header) <= header_bytes);

void release(void* memory) {
  if (memory == nullptr) {
    return;
  }
  std::byte* block = static_cast<std::byte*>(memory) - header_bytes;
  Header header;
  std::memcpy(&header, block, sizeof header);
  header.counted_by->add(-header.bytes);
  c10::free_cpu(block);
}

/// LibTorch's own allocation, counted.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(TensorMemory& memory) : memory_(memory) {}

  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) {
      return {nullptr, nullptr, &release, cpu};
    }
    auto* block = static_cast<std::byte*>(c10::alloc_cpu(bytes + header_bytes));
    const Header header{&memory_, static_cast<int64_t>(bytes)};
    std::memcpy(block, &header, sizeof header);
    memory_.add(header.bytes);
    return {block + header_bytes, block + header_bytes, &release, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  TensorMemory& memory_;
};

}  // namespace

void TensorMemory::add(int64_t bytes) {
  const int64_t now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t before = peak_.load(std::memory_order_relaxed);
  while (now > before && !peak_.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
}

Bytes TensorMemory::take_peak() {
  return Bytes(peak_.exchange(held_.load(std::memory_order_relaxed), std::memory_order_relaxed));
}

// Both live until the process ends, as the tensors that are freed last do.
TensorMemory& count_tensor_memory() {
  auto* memory = new TensorMemory;
  constexpr uint8_t before_the_default = 1;
  c10::SetCPUAllocator(new CountingAllocator(*memory), before_the_default);
  return *memory;
}

}  // namespace lockstep::backend

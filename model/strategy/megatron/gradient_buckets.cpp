#include "model/strategy/megatron/gradient_buckets.hpp"

#include <numeric>
#include <ranges>

namespace lockstep {

namespace {

int64_t padded(int64_t elements, int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

class BufferMaker {
 public:
  explicit BufferMaker(const BucketOptions& options) : options_(options) {}

  void add(const BufferedParameter& parameter) {
    const bool is_apart = parameter.is_shared && options_.shards.has_value();
    if (options_.shards) {
      constexpr int64_t alignment = 64;
      next_ = padded(next_, alignment);
    }
    if (is_apart && !open_.parts.empty()) {
      close();
    }
    open_.parts.push_back({parameter.parameter, next_, parameter.elements});
    next_ += parameter.elements;
    const bool is_full =
        options_.bucket_elements && next_ - open_.begin >= *options_.bucket_elements;
    if (is_full || is_apart) {
      close();
    }
  }

  GradientBuffer take() {
    if (!open_.parts.empty()) {
      close();
    }
    buffer_.elements = next_;
    return std::move(buffer_);
  }

 private:
  // Shards of equal size that begin at 256 bytes.
  void close() {
    constexpr int64_t alignment = 128;
    next_ = options_.shards ? padded(next_, std::lcm(*options_.shards, alignment)) : next_;
    open_.end = next_;
    buffer_.buckets.push_back(std::move(open_));
    open_ = GradientBucket{next_, next_};
  }

  BucketOptions options_;
  GradientBuffer buffer_;
  GradientBucket open_;
  int64_t next_ = 0;
};

}  // namespace

GradientBuffer megatron_buffer(const std::vector<BufferedParameter>& parameters,
                               const BucketOptions& options) {
  BufferMaker maker(options);
  for (const BufferedParameter& parameter : std::views::reverse(parameters)) {
    maker.add(parameter);
  }
  return maker.take();
}

}  // namespace lockstep

// A parser that calls itself for every nested list must not see a list of a million lists: this
// walks over the bytes once before it does.
#include <vector>

#include "io/report/report_envelope.hpp"

namespace lockstep {

namespace {

constexpr size_t depth_max = 32;

/// What a byte of CBOR (RFC 8949, section 3) begins: its major type and its argument.
struct Item {
  uint8_t major = 0;
  uint64_t argument = 0;
};

class Walk {
 public:
  explicit Walk(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  void run() {
    open_.push_back(1);
    while (!open_.empty()) {
      if (open_.back() == 0) {
        open_.pop_back();
        continue;
      }
      --open_.back();
      take_one();
    }
    require(at_ == bytes_.size());
  }

 private:
  static void require(bool holds) {
    if (!holds) {
      throw ReportError("its content is not that of a report: run the ranks again");
    }
  }

  size_t left() const { return bytes_.size() - at_; }

  // Lists without a length, which reports do not have, are refused.
  Item item() {
    require(left() > 0);
    const uint8_t first = bytes_[at_++];
    Item item{static_cast<uint8_t>(first >> 5), static_cast<uint64_t>(first & 0x1f)};
    if (item.argument < 24) {
      return item;
    }
    require(item.argument < 28);
    const size_t more = size_t{1} << (item.argument - 24);
    require(left() >= more);
    item.argument = 0;
    for (size_t byte = 0; byte < more; ++byte) {
      item.argument = item.argument << 8 | bytes_[at_++];
    }
    return item;
  }

  void take_one() {
    const Item next = item();
    switch (next.major) {
      case 2:
      case 3:  // bytes and text
        require(next.argument <= left());
        at_ += next.argument;
        break;
      case 4: open(next.argument, 1); break;
      case 5: open(next.argument, 2); break;
      case 6: require(false); break;  // tags
      default: break;                 // numbers and simple values
    }
  }

  void open(uint64_t elements, uint64_t items_each) {
    require(open_.size() < depth_max && elements <= left() / items_each);
    open_.push_back(elements * items_each);
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  std::vector<uint64_t> open_;  ///< by list that is open: items still to come
};

}  // namespace

void check_cbor(std::span<const uint8_t> content) { Walk(content).run(); }

}  // namespace lockstep

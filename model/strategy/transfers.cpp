#include "model/strategy/transfers.hpp"

#include <algorithm>

namespace lockstep {

void Transfers::begin_forward(bool training) {
  counts_ = training;
  if (training && step_has_ended_) {
    transfers_.clear();
    step_has_ended_ = false;
  }
}

void Transfers::add(std::string_view label, Bytes bytes) {
  if (!counts_) {
    return;
  }
  auto known = std::find_if(transfers_.begin(), transfers_.end(),
                            [label](const Transfer& each) { return each.label == label; });
  if (known == transfers_.end()) {
    known = transfers_.insert(known, Transfer{std::string(label), 0, {}});
  }
  ++known->count;
  known->bytes += bytes;
}

void Transfers::repeat_period(int64_t times) {
  for (size_t at = 0; at < transfers_.size(); ++at) {  // labels keep their places
    const Transfer already = at < before_period_.size() ? before_period_[at] : Transfer{};
    transfers_[at].count += (transfers_[at].count - already.count) * times;
    transfers_[at].bytes += (transfers_[at].bytes - already.bytes) * times;
  }
}

std::vector<Transfer> Transfers::all() const {
  std::vector<Transfer> all = transfers_;
  Transfer counted{"counted_by_guides", 0, {}};
  for (const Transfer& transfer : transfers_) {
    const bool is_one = std::find(guides_.begin(), guides_.end(), transfer.label) != guides_.end();
    counted.count += is_one ? 1 : 0;
    counted.bytes += is_one ? transfer.bytes : Bytes{};
  }
  all.push_back(counted);
  return all;
}

}  // namespace lockstep

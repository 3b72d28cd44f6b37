#include "model/strategy/layout/shard_kinds.hpp"

#include <map>
#include <utility>

namespace lockstep {

namespace {

/// The kind before, and what tells ranks of it apart.
using KindAndPieces = std::pair<int64_t, std::vector<int64_t>>;

/// Numbers in the order of first appearance. Neighbours are mostly alike.
class KindNumbers {
 public:
  int64_t of(KindAndPieces what) {
    if (last_ == known_.end() || last_->first != what) {
      last_ = known_.try_emplace(std::move(what), static_cast<int64_t>(known_.size())).first;
    }
    return last_->second;
  }

 private:
  std::map<KindAndPieces, int64_t> known_;
  std::map<KindAndPieces, int64_t>::iterator last_ = known_.end();
};

}  // namespace

void ShardKinds::divide(const ShardLayout& layout, const std::vector<int64_t>& treatments) {
  KindNumbers numbers;
  for (size_t rank = 0; rank < kinds_.size(); ++rank) {
    KindAndPieces what{kinds_[rank], {}};
    for (const ShardPiece& piece : layout.pieces_of(static_cast<int32_t>(rank))) {
      what.second.insert(what.second.end(),
                         {treatments[piece.tensor], piece.elements, piece.position});
    }
    kinds_[rank] = numbers.of(std::move(what));
  }
}

Neighbourhoods neighbours_in_order(int32_t ranks, int32_t neighbours) {
  Neighbourhoods neighbourhoods;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    neighbourhoods.of_rank.push_back(static_cast<uint32_t>(rank / neighbours));
    neighbourhoods.columns.push_back(static_cast<uint32_t>(rank % neighbours));
  }
  return neighbourhoods;
}

void ShardKinds::set_apart(const std::vector<int32_t>& owners) {
  std::vector<bool> owns(kinds_.size(), false);
  for (const int32_t owner : owners) {
    if (owner >= 0) {
      owns[static_cast<size_t>(owner)] = true;
    }
  }
  KindNumbers numbers;
  for (size_t rank = 0; rank < kinds_.size(); ++rank) {
    const int64_t itself = owns[rank] ? static_cast<int64_t>(rank) : -1;
    kinds_[rank] = numbers.of({kinds_[rank], {itself}});
  }
}

}  // namespace lockstep

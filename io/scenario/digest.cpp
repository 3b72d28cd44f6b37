#include "io/scenario/digest.hpp"

#include <algorithm>
#include <cstring>

#include "model/core/random.hpp"

namespace lockstep {

namespace {

uint64_t with_text(uint64_t digest, const std::string& text) {
  digest = random_key(digest, text.size());
  for (size_t begin = 0; begin < text.size(); begin += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + begin, std::min(sizeof word, text.size() - begin));
    digest = random_key(digest, word);
  }
  return digest;
}

}  // namespace

uint64_t digest_of(const Node& node) {
  uint64_t digest = random_key(static_cast<uint64_t>(node.kind), node.quoted ? 1 : 0);
  digest = with_text(digest, node.text);
  for (const NodePtr& item : node.items) {
    digest = random_key(digest, digest_of(*item));
  }
  for (const Entry& entry : node.entries) {
    digest = random_key(with_text(digest, entry.key), digest_of(*entry.value));
  }
  return digest;
}

}  // namespace lockstep

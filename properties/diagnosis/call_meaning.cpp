#include "properties/diagnosis/call_meaning.hpp"

#include <algorithm>

#include "model/core/random.hpp"

namespace lockstep {

namespace {

bool are_same_call(const Site& a, const Site& b) {
  return a.description == b.description && a.data == b.data;
}

// Whether the other way of the `if` around a statement holds the same call, reached or not.
bool other_way_calls(const Sites& sites, const Site& site) {
  return std::any_of(sites.all().begin(), sites.all().end(), [&site](const auto& entry) {
    return are_ways(&site, &entry.second) && are_same_call(site, entry.second);
  });
}

}  // namespace

bool are_ways(const Site* a, const Site* b) {
  return a != nullptr && b != nullptr && a->guard != no_site && a->guard == b->guard &&
         a->in_else != b->in_else;
}

bool ways_exchange(const Sites& sites, SiteId left, SiteId right) {
  const Site* a = sites.find(left);
  const Site* b = sites.find(right);
  return are_ways(a, b) && !are_same_call(*a, *b) && other_way_calls(sites, *a) &&
         other_way_calls(sites, *b);
}

uint64_t meaning_of(const Sites& sites, const Call& call) {
  const Site* site = sites.find(call.site);
  return site == nullptr || site->data.empty()
             ? call.site.value
             : random_key(site_id(site->description).value, site_id(site->data).value);
}

int order_of(const Sites& sites, SiteId left, SiteId right) {
  const Site* a = sites.find(left);
  const Site* b = sites.find(right);
  const bool parts = a != nullptr && b != nullptr && a->order > 0 && b->order > 0 &&
                     a->file == b->file && a->line == b->line && a->column == b->column;
  return parts ? a->order - b->order : 0;
}

}  // namespace lockstep

#include "model/core/site.hpp"

#include <fmt/core.h>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {
std::string key_of(const Site& site) {
  const std::string place =
      site.line > 0 ? fmt::format("{}:{}:{}", site.file, site.line, site.column) : site.description;
  return site.part.empty() ? place : place + ", " + site.part;
}
}  // namespace

SiteId Sites::add(const Site& site) {
  const SiteId id = site_id(key_of(site));
  const auto [place, fresh] = sites_.emplace(id, site);
  ensure(fresh || key_of(place->second) == key_of(site), "two sites share one hash");
  return id;
}

const Site* Sites::find(SiteId id) const {
  const auto found = sites_.find(id);
  return found == sites_.end() ? nullptr : &found->second;
}

void Sites::merge(const Sites& other) {
  for (const auto& [id, site] : other.sites_) {
    add(site);
  }
}

std::string Sites::place(SiteId id) const {
  const Site* site = find(id);
  if (site == nullptr) {
    return id == no_site ? std::string("no site") : fmt::format("site {:#x}", id.value);
  }
  if (site->line > 0) {
    return fmt::format("{}:{}:{}", site->file, site->line, site->column);
  }
  return site->description;
}

}  // namespace lockstep

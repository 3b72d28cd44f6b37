#include "io/scenario/forms/field.hpp"

#include <fmt/format.h>

#include "io/scenario/names/familiar_words.hpp"

namespace lockstep {

void fail_unknown_key(Reader& reader, const Entry& entry, std::string_view where,
                      const std::vector<std::string_view>& legal) {
  const std::string_view section = section_of_key(where, entry.key);
  const std::string_view override_keys = keys_for_override(where, entry.key);
  reader.fail(entry.mark, fmt::format("`{}` has no key `{}`", where, entry.key),
              !override_keys.empty() ? std::string(override_keys)
              : section.empty()      ? spelling_remedy(entry.key, legal)
                                     : fmt::format("`{}` belongs under `{}`", entry.key, section));
}

}  // namespace lockstep

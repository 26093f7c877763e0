// A small ELF laid out as a cubin, so that parsers can be given every kind of damage.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace tunerd::test {

struct SyntheticParameter {
  std::uint16_t ordinal, offset;
  std::uint32_t size_bytes;
};

struct SyntheticCubin {
  std::string entry = "scale";
  std::vector<SyntheticParameter> parameters;
  std::uint8_t abi_version = 8;
  std::uint32_t flags = 0x6005a04;
  std::uint16_t machine = 190;

  static void put(std::string& out, const void* data, std::size_t size) {
    out.append(static_cast<const char*>(data), size);
  }

  std::string info() const {
    std::string out;
    const unsigned char skipped[4] = {3, 0x50, 0, 0};  // a half-word record, of no interest
    put(out, skipped, sizeof skipped);
    for (const auto& parameter : parameters) {
      const unsigned char head[4] = {4, 0x17, 12, 0};
      const std::uint32_t index = 0, packed = parameter.size_bytes << 18 | 0x1f000;
      put(out, head, sizeof head);
      put(out, &index, 4);
      put(out, &parameter.ordinal, 2);
      put(out, &parameter.offset, 2);
      put(out, &packed, 4);
    }
    return out;
  }

  std::string bytes() const {
    std::string names(1, '\0');
    const auto name = [&](const std::string& text) {
      const auto at = static_cast<Elf64_Word>(names.size());
      names += text;
      names += '\0';
      return at;
    };
    std::vector<Elf64_Shdr> sections(4);
    sections[1].sh_name = name(".shstrtab");
    sections[2].sh_name = name(".text." + entry);
    sections[3].sh_name = name(".nv.info." + entry);
    std::string body;
    const std::vector<std::string> contents{"", names, std::string(64, '\x5a'), info()};
    for (std::size_t i = 1; i < sections.size(); ++i) {
      sections[i].sh_offset = sizeof(Elf64_Ehdr) + body.size();
      sections[i].sh_size = contents[i].size();
      body += contents[i];
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_ABIVERSION] = abi_version;
    header.e_machine = machine;
    header.e_flags = flags;
    header.e_shoff = sizeof header + body.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections.size());
    header.e_shstrndx = 1;
    std::string out;
    put(out, &header, sizeof header);
    out += body;
    put(out, sections.data(), sections.size() * sizeof(Elf64_Shdr));
    return out;
  }
};

}  // namespace tunerd::test

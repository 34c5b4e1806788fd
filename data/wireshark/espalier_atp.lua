-- Wireshark dissector of Espalier's sums in the network: docs/protocol/atp.md, "Packets".
--
--   wireshark -X lua_script:espalier_atp.lua                  packets from and to UDP port 7800
--   tshark -X lua_script:espalier_atp.lua -d udp.port==9000,espalier_atp -r FILE
--
-- tests/switch/dissector_test.c compares the table of fields with what src/wire/atp_packet.h writes.

local atp = Proto("espalier_atp", "Espalier sums in the network")

local types = {[1] = "gradient", [2] = "result", [3] = "hello", [4] = "welcome", [5] = "bye", [6] = "ask",
	[7] = "probe"}
local kinds = {[0] = "none", [1] = "fixed 32", [2] = "fixed 16", [3] = "i32", [4] = "u32"}
local flags = {{1, "RESEND"}, {2, "BYPASS"}, {4, "COLLISION"}, {8, "MARK"}, {16, "DONE"}}

-- name, offset, bytes; little endian
local fields = {
	{"version", 0, 1},
	{"type", 1, 1},
	{"flags", 2, 1},
	{"hop", 3, 1},
	{"sequence", 4, 4},
	{"flow", 8, 8},
	{"bitmap", 16, 8},
	{"call", 24, 4},
	{"owner", 28, 2},
	{"group", 30, 2},
	{"fan_in_0", 32, 1},
	{"fan_in_1", 33, 1},
	{"scale", 34, 1},
	{"kind", 35, 1},
	{"words", 36, 2},
	{"next", 38, 2},
	{"tag", 40, 8},
}

local HEADER = 48
local hexadecimal = {flags = true, flow = true, bitmap = true, call = true, scale = true, tag = true}
local makers = {[1] = ProtoField.uint8, [2] = ProtoField.uint16, [4] = ProtoField.uint32, [8] = ProtoField.uint64}
local names = {type = types, kind = kinds}

local made = {}
for _, field in ipairs(fields) do
	local name, bytes = field[1], field[3]
	local form = hexadecimal[name] and base.HEX or base.DEC
	made[name] = makers[bytes]("espalier_atp." .. name, name, form, names[name])
end
local payload = ProtoField.bytes("espalier_atp.payload", "words")
local all = {payload}
for _, field in pairs(made) do
	all[#all + 1] = field
end
atp.fields = all

local function flag_text(value)
	local text = {}
	for _, flag in ipairs(flags) do
		if math.floor(value / flag[1]) % 2 == 1 then
			text[#text + 1] = flag[2]
		end
	end
	return table.concat(text, " ")
end

function atp.dissector(buffer, packet, tree)
	local length = buffer:len()
	if length < HEADER or buffer(0, 1):uint() ~= 1 or length ~= HEADER + 4 * buffer(36, 2):le_uint() then
		return 0
	end
	local root = tree:add(atp, buffer())
	for _, field in ipairs(fields) do
		local item = root:add_le(made[field[1]], buffer(field[2], field[3]))
		if field[1] == "flags" then
			item:append_text(" " .. flag_text(buffer(2, 1):uint()))
		end
	end
	if length > HEADER then
		root:add(payload, buffer(HEADER))
	end
	packet.cols.protocol = "ATP"
	packet.cols.info = string.format("%s %d owner %d %s", types[buffer(1, 1):uint()] or "unknown", buffer(4, 4):le_uint(),
		buffer(28, 2):le_uint(), flag_text(buffer(2, 1):uint()))
	return length
end

DissectorTable.get("udp.port"):add(7800, atp)

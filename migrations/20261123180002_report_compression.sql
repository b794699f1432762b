-- Compresses reports, as 20261123180001_compression.sql compresses resources.
SELECT compress_with_lz4('adapter_reports', 'conditions', 'data');
